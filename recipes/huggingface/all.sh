#!/usr/bin/env bash
# The BERT, all rows, one after the other, and the table of their scores ($OUT/table.txt).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

all_rows baseline src_elmo src_elmo_shdemb src_ft
