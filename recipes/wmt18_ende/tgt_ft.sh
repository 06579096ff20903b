#!/usr/bin/env bash
# TGT-FT, English-German: the decoder reads the causal LM's top state, and the LM is trained with the rest.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
#          bash recipes/lm/de_causal.sh   (or TGT_LM=FILE)
# Launch:  bash recipes/wmt18_ende/tgt_ft.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/tgt_ft.sh --bitext 5186K
# Takes:   13 hours for 10,000 updates (160K) to 40 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          57 GB of disk (13 checkpoints).
# Expect:  tgt_ft: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            24.2/18.4  26.3/20.1  31.4/23.5  34.4/25.5  36.8/27.2  38.8/28.7
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
finetune_side tgt "$TGT_LM"
row "${MODEL[@]}"
