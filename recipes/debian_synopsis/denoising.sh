#!/usr/bin/env bash
# DENOISING: encoder and decoder start from a denoiser of English plain text, all embeddings tied.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

transformer_to_denoise
plain_text_denoiser
row "${FUSION[@]}" --finetune-from-model "$DENOISER"
