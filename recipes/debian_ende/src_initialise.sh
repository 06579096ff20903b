#!/usr/bin/env bash
# SRC-INITIALISE: the encoder starts from the cloze LM's forward tower, with its sizes, and is trained.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

row --arch lmfusion_tiny --src-fusion initialise --src-lm "$SRC_LM"
