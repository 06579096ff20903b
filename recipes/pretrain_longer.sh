#!/usr/bin/env bash
# A language model of the embedded corpus, trained longer than the shipped one, with the shipped one's BPE and size.
#
#   bash recipes/pretrain_longer.sh cloze|causal [FOLDER]       (default: runs/language-models)
#   bash recipes/pretrain_longer.sh cloze|causal --numbers      prints NAME=VALUE of every number it would use
#
# MORE_TEXT=MORE: trains on MORE's mono.more.en or .de as well (data-prep/debian/more_text.py); validation stays the same.
# Writes FOLDER/en-cloze.pt or FOLDER/de-causal.pt, spm.model and dict.txt; rows take them by PRETRAINED=FOLDER.
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    half a second an update on one CPU core with bf16 units; the number of updates is LM_UPDATES.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

KIND="${1:-}" OUT="${2:-runs/language-models}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"
case "$KIND" in
cloze) FILE=en-cloze.pt TEXT=en FLAGS=(--self-target --arch bi_transformer_lm) ;;
causal) FILE=de-causal.pt TEXT=de FLAGS=(--arch uni_transformer_lm) ;;
*) echo "error: give cloze or causal, e.g. bash recipes/pretrain_longer.sh cloze" >&2 && exit 2 ;;
esac

# THE NUMBERS where they are not those of recipes/_common.sh. Set any in the environment to override it.
: "${LM_UPDATES:=20000}" "${LM_WARMUP:=500}" "${LM_VALIDATE_EVERY:=500}" "${LM_PATIENCE:=5}"
if [[ "$KIND" == causal ]]; then # the shipped one's
    : "${LM_LAYERS:=3}" "${LM_DROPOUT:=0.2}"
fi

. recipes/_common.sh
if [[ "$OUT" == --numbers ]]; then
    numbers recipes/pretrain_longer.sh | grep '^LM_'
    exit 0
fi
SHIPPED=pretrained # PRETRAINED is for those who use what is trained here
[[ -f "$SHIPPED/spm.model" ]] || die "$SHIPPED/spm.model: no such file. Check the repository out again."

begin
prepare "$CORPUS" --spm "$SHIPPED/spm.model" --dict "$SHIPPED/dict.txt" --lm-langs "$TEXT" \
    ${MORE_TEXT:+--more-text "$MORE_TEXT"}
train_lm "$KIND.$TEXT" "$TEXT" "${FLAGS[@]}" --patience "$LM_PATIENCE"
cp "$DATA_DIR/spm.model" "$DATA_DIR/dict.txt" "$OUT/"
save_lm "$KIND.$TEXT" "$FILE"
