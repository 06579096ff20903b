#!/usr/bin/env bash
# Baseline, English-German: a big transformer without a language model.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
# Launch:  bash recipes/wmt18_ende/baseline.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/baseline.sh --bitext 5186K
# Takes:   2.4 hours for 10,000 updates (160K) to 7.2 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          38 GB of disk (13 checkpoints).
# Expect:  baseline: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            21.4/16.1  28.9/21.5  33.1/24.5  36.2/26.7  39.1/28.4  40.1/29.9
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain
row "${MODEL[@]}"
