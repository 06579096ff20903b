#!/usr/bin/env bash
# English-German translation on the embedded corpus with a BERT of transformers on the source side: what all rows have in
# common. Source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${OUT:-runs/huggingface}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"

# THE NUMBERS of this corpus; all others are in recipes/_common.sh. Set any in the environment to override it.
: "${BITEXT_LINES:=10000}"
: "${S2S_UPDATES:=3000}"
: "${BERT_PIECES:=4000}"         # of the tokenizer that is learned
: "${BERT_DIM:=192}" "${BERT_FFN:=768}" "${BERT_LAYERS:=8}" "${BERT_HEADS:=4}"
: "${BERT_LR:=0.001}" "${BERT_TOKENS:=2048}" "${BERT_UPDATES:=12000}"
: "${BERT_LINES:=0}"             # of plain text to learn from; 0: all

. recipes/_common.sh
. recipes/_rows.sh
rows_begin recipes/huggingface "$@"

# bert: pretrains the BERT with transformers, unless it is there; it is an ordinary folder of Hugging Face.
bert() {
    local bf16=()
    [[ " ${TRAIN_FLAGS[*]} " != *" --cpu-bf16 "* ]] || bf16=(--bf16)
    [[ -f "$OUT/bert/model.safetensors" ]] || python recipes/huggingface/pretrain_bert.py \
        --text "$CORPUS/mono.train.en.xz" --valid "$CORPUS/mono.valid.en.xz" --out "$OUT/bert" --seed "$SEED" \
        --lines "$BERT_LINES" --pieces "$BERT_PIECES" --hidden-size "$BERT_DIM" --intermediate-size "$BERT_FFN" \
        --layers "$BERT_LAYERS" --heads "$BERT_HEADS" --lr "$BERT_LR" --tokens "$BERT_TOKENS" \
        --updates "$BERT_UPDATES" ${bf16[@]+"${bf16[@]}"}
}

# shellcheck disable=SC2034  # rows use it
SRC_LM="${SRC_LM:-$OUT/bert}"
[[ "$SRC_LM" != "$OUT/bert" ]] || bert
SPM="$(shipped spm.model)" DICT="$(shipped dict.txt)"
prepare "$CORPUS" --src-hf "$SRC_LM" --spm "$SPM" --dict "$DICT" --lm-langs
TEXT_FLAGS=(--bpe lmfusion)
side_bpe src "$SRC" "$DATA_DIR/pieces.$SRC.json"
side_bpe tgt "$TGT" ""
