#!/usr/bin/env bash
# Forward self-training: the baseline translates English text, and another one trains on these pairs, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

train_seq2seq baseline --arch lmfusion_tiny
plain_text "$SRC"
translated baseline "$PLAIN"
made_up_pairs "self-$(basename "$PLAIN")" "$PLAIN" "$TRANSLATED"
row --arch lmfusion_tiny
