#!/usr/bin/env bash
# Rows that train on made-up pairs beside the bitext: back-translated, self-trained, copied. Sourced by _rows.sh.
#
# No numbers of a block, which is what folders are begun with: MADE_UP, sentences of plain text that are translated or copied
# (20,000); TAG, a word in front of back-translated sources (none); BACK_FLAGS of their translation (none); SYNTHETIC, their
# translation (made by a model that is trained for it). MADE_UP_DIR is where such text is put ($DATA_DIR), PAIRS the number
# of real pairs that reports give ($BITEXT_LINES), PREPARE_FLAGS are of data-prep/prepare.py.
set -euo pipefail
PREPARE_FLAGS=()

# made_up_pairs NAME SOURCE TARGET FLAGS...: from here on this row trains on the bitext and on the made-up pairs in two files,
# see lmfusion/text/synthetic.py for FLAGS. NAME: of the folder they are put in.
made_up_pairs() {
    local folder="${MADE_UP_DIR:-$DATA_DIR}/$1-with-${PAIRS:-$BITEXT_LINES}" source="$2" target="$3"
    shift 3
    [[ -d "$folder/corpus" ]] || python -P -m lmfusion.text.synthetic "$CORPUS" -s "$SRC" -t "$TGT" --pairs "$BITEXT_LINES" \
        --add "$source" "$target" --out "$folder/corpus" "$@"
    DATA_DIR="$folder" BITEXT_LINES="$(wc -l <"$folder/corpus/train.$SRC")"
    prepare "$folder/corpus" --spm "$SPM" --dict "$DICT" --lm-langs ${PREPARE_FLAGS[@]+"${PREPARE_FLAGS[@]}"}
}

# plain_text LANG: the first MADE_UP lines of the corpus' plain text of a language; sets PLAIN to the file.
plain_text() {
    local count="${MADE_UP:-20000}" read=(xz -dc "$CORPUS/mono.train.$1.xz")
    PLAIN="${MADE_UP_DIR:-$DATA_DIR}/plain-$count.$1"
    [[ ! -f "$PLAIN" ]] || return 0
    [[ ! -f "$CORPUS/mono.train.$1" ]] || read=(cat "$CORPUS/mono.train.$1")
    mkdir -p "$(dirname "$PLAIN")"
    "${read[@]}" | awk -v n="$count" 'NR <= n' >"$PLAIN.partial"
    mv "$PLAIN.partial" "$PLAIN"
}

# translated MODEL FILE FLAGS...: FILE in the other language, by the best checkpoint of a run folder; sets TRANSLATED to the
# file.
translated() {
    local model="$OUT/$1" file="$2"
    shift 2
    TRANSLATED="$OUT/translated/$(basename "$file").by-$(basename "$model")$(printf '%s' "$@" | tr -d ' ')"
    [[ ! -f "$TRANSLATED" ]] || return 0
    mkdir -p "$OUT/translated"
    python -P -m lmfusion.cli translate "$model" "$file" --beam "$BEAM" "$@" >"$TRANSLATED.partial"
    mv "$TRANSLATED.partial" "$TRANSLATED"
}

# other_direction: from here on this row translates the other way.
other_direction() {
    local source="$SRC"
    SRC="$TGT" TGT="$source"
    use_prepared
}

# back_translated: from here on this row trains on plain text of the target language and its translation, too: by SYNTHETIC, a
# file that has it line by line (reverse.sh makes one), or by a baseline in the other direction that is trained on the same pairs.
back_translated() {
    local tag=() flags name
    plain_text "$TGT"
    read -ra flags <<<"${BACK_FLAGS:-}"
    if [[ -n "${SYNTHETIC:-}" ]]; then
        [[ -f "$SYNTHETIC" ]] || die "SYNTHETIC=$SYNTHETIC: no such file. It has a translation of each line of $PLAIN."
        TRANSLATED="$SYNTHETIC" name="given-$(cksum <"$SYNTHETIC" | tr -d ' ')"
    else
        (other_direction && train_seq2seq reverse --arch lmfusion_tiny)
        translated reverse "$PLAIN" ${flags[@]+"${flags[@]}"}
    fi
    [[ -z "${TAG:-}" ]] || tag=(--tag "$TAG")
    name="${name:-back}-${PLAIN##*plain-}$(printf '%s' "${flags[@]}" "${tag[@]}" | tr -cd 'a-zA-Z0-9')"
    made_up_pairs "$name" "$TRANSLATED" "$PLAIN" ${tag[@]+"${tag[@]}"}
}
