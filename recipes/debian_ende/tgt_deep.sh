#!/usr/bin/env bash
# TGT-DEEP: the frozen causal LM's top state, gated, beside the decoder's features (deep fusion).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
row --arch lmfusion_tiny --tgt-fusion deep --tgt-lm "$TGT_LM"
