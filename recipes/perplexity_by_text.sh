#!/usr/bin/env bash
# Perplexity of a small language model against the amount of text it was trained on, at the same number of updates.
#
#   bash recipes/perplexity_by_text.sh cloze|causal [FOLDER]      (default: runs/perplexity-by-text)
#
# Trains an English cloze or a German causal LM on a quarter, a half and all of the corpus' monolingual text and, where
# MORE_TEXT=MORE names a folder of data-prep/debian/more_text.py, on all of it and MORE. Validation text and BPE are the
# same. Prints a table and keeps it in FOLDER/KIND.tsv.
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    some 5 minutes a model on one free CPU core with bf16 units.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

KIND="${1:-}" OUT="${2:-runs/perplexity-by-text}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"
case "$KIND" in
cloze) TEXT=en FLAGS=(--self-target --arch bi_transformer_lm) ;;
causal) TEXT=de FLAGS=(--arch uni_transformer_lm) ;;
*) echo "error: give cloze or causal, e.g. bash recipes/perplexity_by_text.sh causal" >&2 && exit 2 ;;
esac

# THE NUMBERS where they are not those of recipes/_common.sh. Set any in the environment to override it.
: "${LM_DIM:=128}" "${LM_FFN:=512}" "${LM_LAYERS:=2}"
: "${LM_UPDATES:=3000}" "${LM_WARMUP:=300}" "${LM_VALIDATE_EVERY:=500}"

. recipes/_common.sh
[[ -f "$CORPUS/mono.train.$TEXT.xz" ]] || die "$CORPUS/mono.train.$TEXT.xz: no such file. Give a folder of build.py"
BITEXT_LINES=100 # a corpus has pairs, but nothing here reads them
begin

# text FOLDER SHARE: a corpus folder with the first SHARE quarters of the monolingual training text (it is shuffled)
text() {
    local folder="$1" share="$2" file count
    if [[ -d "$folder" ]]; then
        return
    fi
    rm -rf "$folder.partial" && mkdir -p "$folder.partial"
    for file in {valid,test}.{"$SRC","$TGT"} mono.valid."$TEXT"; do
        xz -dc "$CORPUS/$file.xz" >"$folder.partial/$file"
    done
    for file in train.{"$SRC","$TGT"}; do
        xz -dc "$CORPUS/$file.xz" | sed -n "1,${BITEXT_LINES}p" >"$folder.partial/$file"
    done
    count="$(xz -dc "$CORPUS/mono.train.$TEXT.xz" | wc -l)"
    xz -dc "$CORPUS/mono.train.$TEXT.xz" | sed -n "1,$((count * share / 4))p" >"$folder.partial/mono.train.$TEXT"
    mv "$folder.partial" "$folder"
}

# row NAME SHARE [FLAGS OF prepare...]: one model
row() {
    local name="$KIND.$1" share="$2"
    shift 2
    text "$OUT/text.$TEXT.$share-quarters" "$share"
    DATA_DIR="$OUT/data.$name"
    prepare "$OUT/text.$TEXT.$share-quarters" --spm pretrained/spm.model --dict pretrained/dict.txt --lm-langs "$TEXT" \
        "$@"
    train_lm "$name" "$TEXT" "${FLAGS[@]}"
    ROWS+=("$OUT/$name")
}

ROWS=()
row quarter 1
row half 2
row all 4
if [[ -n "${MORE_TEXT:-}" ]]; then
    row all-and-more 4 --more-text "$MORE_TEXT"
fi
python recipes/perplexity_table.py "$TEXT" "${ROWS[@]}" | tee "$OUT/$KIND.tsv.partial"
mv "$OUT/$KIND.tsv.partial" "$OUT/$KIND.tsv"
