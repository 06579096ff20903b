#!/usr/bin/env bash
# TGT-ELMO: in place of word embeddings the decoder reads a learned mix of the frozen causal LM's layers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
elmo tgt "$TGT_LM"
row "${FUSION[@]}"
