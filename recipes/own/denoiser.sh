#!/usr/bin/env bash
# An encoder and a decoder that restore both languages' plain text from noise.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

transformer_to_denoise
own_denoiser
