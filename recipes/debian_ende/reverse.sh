#!/usr/bin/env bash
# Reverse: the LSTM in the other direction, and its translation of plain text, which back-translation rows may read (SYNTHETIC).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

other_direction
lstm
row "${FUSION[@]}"
plain_text "$SRC"
translated reverse "$PLAIN"
xz -c "$TRANSLATED" >"$OUT/reverse/synthetic.partial"
mv "$OUT/reverse/synthetic.partial" "$OUT/reverse/synthetic.xz"
