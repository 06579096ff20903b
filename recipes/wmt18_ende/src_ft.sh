#!/usr/bin/env bash
# SRC-FT, English-German: the encoder reads the cloze LM's top state, and the LM is trained with the rest.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
#          bash recipes/lm/en_cloze.sh   (or SRC_LM=FILE)
# Launch:  bash recipes/wmt18_ende/src_ft.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/src_ft.sh --bitext 5186K
# Takes:   22 hours for 10,000 updates (160K) to 66 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          79 GB of disk (13 checkpoints).
# Expect:  src_ft: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            24.3/18.9  32.1/23.9  34.9/26.0  37.4/27.9  39.3/29.1  40.8/30.2
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

source_lm
finetune_side src "$SRC_LM"
row "${MODEL[@]}" --encoder-layers "$FT_ENCODER_LAYERS"
