#!/usr/bin/env bash
# All rows of the paper's Table 3 that are its own, one after the other, and our scores beside the published ones.
#
# Needs:   what the rows need: the data, and the language models of recipes/lm
# Launch:  bash recipes/cnn_dm/all.sh
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/cnn_dm/all.sh
# Takes:   the sum of the rows (see their headers), in time and disk
# Expect:  == NAME before each row, and the table at the end
# Paper:   the table's lines "paper"
WORDS=("$@")
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

all_rows lead3 baseline src_elmo_shdemb
