#!/usr/bin/env bash
# SRC-ELMO with frozen word vectors: word2vec's CBOW.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm cbow
elmo src "$SRC_LM"
row "${FUSION[@]}" --src-positions own
