#!/usr/bin/env bash
# SRC-FT with a causal transformer: the encoder reads its top state, and it trains with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm causal
finetune src "$SRC_LM"
row "${FUSION[@]}"
