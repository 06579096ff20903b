#!/usr/bin/env bash
# Baseline, CNN-DailyMail: a base transformer without a language model.
#
# Needs:   bash data-prep/cnn_dm.sh --out data
# Launch:  bash recipes/cnn_dm/baseline.sh
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/cnn_dm/baseline.sh
# Takes:   not known: the paper gives no speed for this size. 12 GB of disk (13 checkpoints).
# Expect:  baseline: 30,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   ROUGE-1/2/L 40.07/17.61/36.78.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain
row "${MODEL[@]}"
