#!/usr/bin/env bash
# TGT-ELMO, English-German: the decoder reads a learned mix of the frozen causal LM's layers.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
#          bash recipes/lm/de_causal.sh   (or TGT_LM=FILE)
# Launch:  bash recipes/wmt18_ende/tgt_elmo.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/tgt_elmo.sh --bitext 5186K
# Takes:   8.9 hours for 10,000 updates (160K) to 27 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          38 GB of disk (13 checkpoints).
# Expect:  tgt_elmo: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            21.3/16.4  28.0/21.1  31.9/24.0  36.1/26.7  39.3/28.6  40.5/29.7
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
elmo_side tgt "$TGT_LM"
row "${MODEL[@]}"
