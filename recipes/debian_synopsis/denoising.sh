#!/usr/bin/env bash
# DENOISING: encoder and decoder start from a denoiser of English plain text, all embeddings tied.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain_text_denoiser
row --arch lmfusion_tiny --share-all-embeddings --finetune-from-model "$DENOISER"
