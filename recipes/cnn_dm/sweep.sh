#!/usr/bin/env bash
# Dropout sweep: train a row with dropout 0.1, 0.2, 0.3 and 0.4, then test the one of the lowest validation loss.
#
#   bash recipes/cnn_dm/sweep.sh ROW [OPTIONS]
#
# Needs:   what the row needs
# Launch:  bash recipes/cnn_dm/sweep.sh src_elmo_shdemb
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/cnn_dm/sweep.sh src_elmo_shdemb
#          DROPOUTS="0.2 0.3" LM_DROPOUTS="0.0 0.2 0.4" bash recipes/cnn_dm/sweep.sh src_elmo_shdemb
#          LM_DROPOUTS: of the mixing weights, or of the fine-tuned LM's state; by default that of _corpus.sh alone
# Takes:   as often the row's time and disk as there are settings; runs are called ROW.dropout-0.1 and so on
# Expect:  a line for each setting with its validation loss, the lowest marked, then the row's scores
# Paper:   the row's figures; it tuned dropout between 0.1 and 0.4 on the validation set
NAME="${1:-}"
[[ "$NAME" == -* || $# == 0 ]] || shift
WORDS=("$@")
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

DROPOUTS="${DROPOUTS:-0.1 0.2 0.3 0.4}"
sweep_row "$NAME"
