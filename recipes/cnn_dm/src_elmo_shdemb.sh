#!/usr/bin/env bash
# SRC-ELMO + SHDEMB, CNN-DailyMail: the encoder reads a learned mix of the frozen cloze LM's layers; one embedding for
# the decoder's input and output.
#
# Needs:   bash data-prep/cnn_dm.sh --out data
#          bash recipes/lm/cnn_dm_cloze.sh   (or SRC_LM=FILE)
# Launch:  bash recipes/cnn_dm/src_elmo_shdemb.sh
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/cnn_dm/src_elmo_shdemb.sh
# Takes:   not known: the paper gives no speed for this size. 17 GB of disk (13 checkpoints).
# Expect:  src_elmo_shdemb: 30,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   ROUGE-1/2/L 41.56/18.94/38.47.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

source_lm
elmo_side src "$SRC_LM"
row "${MODEL[@]}" --share-decoder-input-output-embed
