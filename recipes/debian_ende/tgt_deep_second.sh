#!/usr/bin/env bash
# TGT-DEEP as a second stage: TGT-DEEP that starts from the baseline, which is trained first.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
second_stage
row --arch lmfusion_tiny --tgt-fusion deep --tgt-lm "$TGT_LM" "${START[@]}"
