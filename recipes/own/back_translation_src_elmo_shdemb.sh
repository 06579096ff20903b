#!/usr/bin/env bash
# SRC-ELMO + SHDEMB with back-translation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_back_translation
src_elmo_shdemb "$SRC_LM"
row "${SRC_ELMO_SHDEMB[@]}"
