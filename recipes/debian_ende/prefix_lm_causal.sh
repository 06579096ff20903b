#!/usr/bin/env bash
# PREFIX-LM from the causal LM, whose sizes it has.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
prefix_lm
row "${FUSION[@]}" --prefix-lm "$TGT_LM"
