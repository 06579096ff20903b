#!/usr/bin/env bash
# Distillation (Kim and Rush 2016): SRC-ELMO + SHDEMB translates the training sources and plain text, and a plain transformer
# learns that. Ends in a table of BLEU and speed, with the student in 8-bit by CTranslate2, in $OUT/distill/table.md.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

src_elmo_shdemb "$SRC_LM"
train_seq2seq src_elmo_shdemb "${SRC_ELMO_SHDEMB[@]}"
train_seq2seq baseline --arch lmfusion_tiny
plain_text "$SRC"
SOURCES="$DATA_DIR/sources-$BITEXT_LINES-and-$(basename "$PLAIN")"
xz -dc "$CORPUS/train.$SRC.xz" | awk -v n="$BITEXT_LINES" 'NR <= n' | cat - "$PLAIN" >"$SOURCES"
translated src_elmo_shdemb "$SOURCES"
made_up_pairs "distilled-$(basename "$PLAIN")" "$SOURCES" "$TRANSLATED" --upsample 0
row --arch lmfusion_tiny
[[ -n "${TRAIN_ONLY:-}" || -d "$OUT/distill/ctranslate2" ]] ||
    python -P -m lmfusion.cli export "$OUT/distill" --ctranslate2 "$OUT/distill/ctranslate2"
[[ -n "${TRAIN_ONLY:-}" ]] || python recipes/speed_table.py "$TEST_SOURCE" "$TEST_REFERENCE" --save "$OUT/distill/table.md" \
    "baseline=$OUT/baseline" "SRC-ELMO+SHDEMB=$OUT/src_elmo_shdemb" "student=$OUT/distill" \
    "student, CTranslate2=$OUT/distill/ctranslate2" "student, CTranslate2 int8=$OUT/distill/ctranslate2:int8"
