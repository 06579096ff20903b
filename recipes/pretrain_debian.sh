#!/usr/bin/env bash
# The two small language models in pretrained/: an English cloze LM and a German causal LM of the embedded corpus.
#
#   bash recipes/pretrain_debian.sh [FOLDER]       (default: runs/pretrain_debian)
#
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    about an hour and a half for the cloze LM and 10 minutes for the causal LM on one CPU core with bf16 units, 1 GB of disk.
# Expect:   valid_ppl as in pretrained/README.md; the logs of the shipped models lie beside it.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT="${1:-runs/pretrain_debian}"
BITEXT_LINES=10000 BPE_SIZE=4000 MAX_RATIO=3 SEED=1
LM_DIM=192 LM_FFN=768 LM_HEADS=4 LM_LR=0.002 LM_TOKENS=2048 LM_VALIDATE_EVERY=500
. recipes/_common.sh

begin
prepare data-prep/debian/en-de

LM_WARMUP=500 LM_UPDATES=12000 train_lm cloze.en en --self-target --arch bi_transformer_lm --decoder-layers 4

# The learning rate was first laid out for 4000 updates and, from update 1500 on, brought down by update 2300.
CAUSAL=(--arch uni_transformer_lm --decoder-layers 3)
LM_WARMUP=300 LM_DROPOUT=0.2
LM_TOTAL=4000 LM_UPDATES=1500 train_lm causal.de.1 de "${CAUSAL[@]}"
LM_TOTAL=2300 LM_UPDATES=2300 train_lm causal.de.2 de "${CAUSAL[@]}" \
    --continue-once "$OUT/causal.de.1/checkpoints/checkpoint_last.pt"

mkdir -p "$OUT/pretrained"
cp "$OUT/data/spm.model" "$OUT/data/dict.txt" "$OUT/pretrained/"
lmfusion export "$OUT/cloze.en/checkpoints/checkpoint_best.pt" --half --out "$OUT/pretrained/en-cloze.pt"
lmfusion export "$OUT/causal.de.2/checkpoints/checkpoint_best.pt" --half --out "$OUT/pretrained/de-causal.pt"
echo "Written: $OUT/pretrained"
