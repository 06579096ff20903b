#!/usr/bin/env bash
# SRC-ELMO + SHDEMB: SRC-ELMO, and one embedding for the decoder's input and output.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

src_elmo_shdemb "$SRC_LM"
row "${SRC_ELMO_SHDEMB[@]}"
