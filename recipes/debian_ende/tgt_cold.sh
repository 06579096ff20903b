#!/usr/bin/env bash
# TGT-COLD: the frozen causal LM's logits, gated, beside the decoder's features (cold fusion).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
row --arch lmfusion_tiny --tgt-fusion cold --tgt-lm "$TGT_LM"
