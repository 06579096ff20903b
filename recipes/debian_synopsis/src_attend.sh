#!/usr/bin/env bash
# SRC-ATTEND: every layer of encoder and decoder attends to the frozen cloze LM's top state as well (BERT-fused).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

row --arch lmfusion_tiny --src-fusion attend --src-lm "$SRC_LM" --src-attend-dropnet "${DROPNET:-1.0}"
