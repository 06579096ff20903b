#!/usr/bin/env bash
# SRC-ATTEND as a second stage: SRC-ATTEND that starts from the baseline, which is trained first.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

second_stage
row --arch lmfusion_tiny --src-fusion attend --src-lm "$SRC_LM" --src-attend-dropnet "${DROPNET:-1.0}" "${START[@]}"
