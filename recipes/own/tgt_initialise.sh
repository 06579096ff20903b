#!/usr/bin/env bash
# TGT-INITIALISE: the decoder starts from the causal LM, with its sizes and a new attention to the encoder.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
row --arch lmfusion_tiny --tgt-fusion initialise --tgt-lm "$TGT_LM" --share-decoder-input-output-embed
