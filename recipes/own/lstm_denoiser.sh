#!/usr/bin/env bash
# An LSTM with attention that restores both languages' plain text from noise.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm_to_denoise
own_denoiser
