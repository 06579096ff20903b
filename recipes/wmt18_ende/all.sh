#!/usr/bin/env bash
# All rows of the paper's Table 4 at one bitext size, one after the other, and our scores beside the published ones.
#
# Needs:   what the rows need: the data, and the language models of recipes/lm
# Launch:  bash recipes/wmt18_ende/all.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/all.sh --bitext 160K
# Takes:   the sum of the rows (see their headers), in time and disk
# Expect:  == NAME before each row, and the table at the end
# Paper:   the table's lines "paper"
WORDS=("$@")
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

all_rows baseline shared shared_bitext_bpe src_elmo src_ft tgt_elmo tgt_ft src_elmo_shdemb
