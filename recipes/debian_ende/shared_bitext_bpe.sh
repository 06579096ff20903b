#!/usr/bin/env bash
# SHARED + bitext-BPE: SHARED, with a BPE learned on the training pairs instead of the monolingual text.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

bitext_bpe
prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs
row --arch lmfusion_tiny --share-all-embeddings
