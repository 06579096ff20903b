#!/usr/bin/env bash
# Copied target text (Currey et al. 2017): German sentences as their own sources, beside the pairs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain_text "$TGT"
made_up_pairs "copied-$(basename "$PLAIN")" "$PLAIN" "$PLAIN"
row --arch lmfusion_tiny
