#!/usr/bin/env bash
# Back-translation together with SRC-ELMO + SHDEMB, as the paper has it at its large scale.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

back_translated
src_elmo_shdemb "$SRC_LM"
row "${SRC_ELMO_SHDEMB[@]}"
