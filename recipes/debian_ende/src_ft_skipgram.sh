#!/usr/bin/env bash
# SRC-FT with word vectors: the embeddings start from skip-gram vectors, and train with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm skipgram
finetune src "$SRC_LM"
row "${FUSION[@]}" --src-positions own
