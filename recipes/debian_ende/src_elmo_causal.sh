#!/usr/bin/env bash
# SRC-ELMO with a frozen causal transformer, which reads from left to right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm causal
elmo src "$SRC_LM"
row "${FUSION[@]}"
