#!/usr/bin/env bash
# SRC-ELMO, English-Turkish: the encoder reads a learned mix of the frozen cloze LM's layers in place of word embeddings.
#
# Needs:   bash data-prep/wmt18_entr.sh --out data
#          bash recipes/lm/en_cloze.sh   (or SRC_LM=FILE)
# Launch:  bash recipes/wmt18_entr/src_elmo.sh
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_entr/src_elmo.sh
# Takes:   12.7 hours for 10,000 updates, if 32 V100 do what the paper measured for English-German; 42 GB of disk
#          (13 checkpoints).
# Expect:  src_elmo: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   12.0 BLEU on newstest2017, 11.3 on newstest2018.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

source_lm
elmo_side src "$SRC_LM"
row "${MODEL[@]}"
