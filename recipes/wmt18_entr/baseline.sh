#!/usr/bin/env bash
# Baseline, English-Turkish: a big transformer without a language model.
#
# Needs:   bash data-prep/wmt18_entr.sh --out data
# Launch:  bash recipes/wmt18_entr/baseline.sh
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_entr/baseline.sh
# Takes:   2.4 hours for 10,000 updates, if 32 V100 do what the paper measured for English-German; 38 GB of disk
#          (13 checkpoints).
# Expect:  baseline: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   9.8 BLEU on newstest2017, 9.5 on newstest2018.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain
row "${MODEL[@]}"
