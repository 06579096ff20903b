#!/usr/bin/env bash
# LSTM + DENOISING: fairseq's LSTM with attention, all embeddings tied, starts from one that restored both languages' plain text.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm_to_denoise
row "${FUSION[@]}" --finetune-from-model "${DENOISER:-$OUT/$NOISED/checkpoints/checkpoint_best.pt}"
