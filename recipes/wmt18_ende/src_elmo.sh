#!/usr/bin/env bash
# SRC-ELMO, English-German: in place of word embeddings the encoder reads a learned mix of the frozen cloze LM's layers.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
#          bash recipes/lm/en_cloze.sh   (or SRC_LM=FILE)
# Launch:  bash recipes/wmt18_ende/src_elmo.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/src_elmo.sh --bitext 5186K
# Takes:   12.7 hours for 10,000 updates (160K) to 38 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          42 GB of disk (13 checkpoints).
# Expect:  src_elmo: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            26.6/20.1  32.5/24.1  35.6/26.5  38.2/28.3  40.0/29.8  41.8/31.0
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

source_lm
elmo_side src "$SRC_LM"
row "${MODEL[@]}"
