#!/usr/bin/env bash
# TGT-SHALLOW: the baseline's model and the causal LM added up in beam search, with the weight that is best on validation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
read -ra weights <<<"${LM_WEIGHTS:-0.05 0.1 0.2 0.3}"
shallow_row "$TGT_LM" "${weights[@]}"
