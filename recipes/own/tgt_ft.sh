#!/usr/bin/env bash
# TGT-FT: in place of word embeddings the decoder reads the causal LM's top state, and the LM trains with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
finetune tgt "$TGT_LM"
row "${FUSION[@]}"
