#!/usr/bin/env bash
# English-German translation on the embedded corpus: what all rows have in common. Source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${OUT:-runs/debian_ende}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"

# THE NUMBERS of this corpus; all others are in recipes/_common.sh. Set any in the environment to override it.
: "${BITEXT_LINES:=10000}"
: "${S2S_UPDATES:=3000}"

. recipes/_common.sh
. recipes/_rows.sh
rows_begin recipes/debian_ende "$@"

# shellcheck disable=SC2034  # rows use it
SRC_LM="$(shipped en-cloze.pt)"
prepare_pairs

# bert_lm: an English BERT of the package descriptions, which is trained where there is none. Sets BERT.
bert_lm() {
    local text="$CORPUS/synopsis" folder="$DATA_DIR/documents.en"
    python data-prep/documents.py --train "$text.train.description.xz" --valid "$text.valid.description.xz" --lang en \
        --spm "$SPM" --dict "$DICT" --out "$folder" --one-a-line
    LM_UPDATES="${BERT_UPDATES:-3000}" LM_VALIDATE_EVERY=500 train_bert bert.en "$folder"
    # shellcheck disable=SC2034  # rows use it
    BERT="$OUT/bert.en/checkpoints/checkpoint_best.pt"
}

# plain_text_denoiser: a denoiser of all plain text, English and German. Sets DENOISER.
plain_text_denoiser() {
    prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs "$SRC" "$TGT"
    DENOISER_UPDATES="${DENOISER_UPDATES:-3000}" LM_VALIDATE_EVERY=500 denoiser "$SRC" "$TGT"
}

target_lm() {
    # shellcheck disable=SC2034  # rows use it
    TGT_LM="$(shipped de-causal.pt)"
}
