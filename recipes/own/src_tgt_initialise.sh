#!/usr/bin/env bash
# SRC-INITIALISE + TGT-INITIALISE: the encoder starts from the cloze LM, the decoder from the causal LM.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
row --arch lmfusion_tiny --src-fusion initialise --src-lm "$SRC_LM" --tgt-fusion initialise --tgt-lm "$TGT_LM" \
    --share-decoder-input-output-embed
