#!/usr/bin/env bash
# All rows, one after the other, and the table of their scores ($OUT/table.txt).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

all_rows baseline shared src_elmo src_elmo_shdemb src_ft tgt_elmo tgt_ft
