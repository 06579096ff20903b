#!/usr/bin/env bash
# SRC-ELMO with BERT: the encoder reads a learned mix of a frozen BERT's layers, trained on masked words and pairs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

bert_lm
elmo src "$BERT"
row "${FUSION[@]}"
