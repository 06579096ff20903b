#!/usr/bin/env bash
# Text of one's own, in a folder that `lmfusion data` filled: what all rows have in common. Source it, do not run it.
#
# `lmfusion train` runs these scripts and sets what they need: DATA_DIR, OUT, SRC, TGT, and the numbers by the amount of
# text. SRC_LM and TGT_LM name language models to use; else lm.sh and causal_lm.sh train them.
# shellcheck disable=SC2034  # what is set here is for the scripts around it
set -euo pipefail

RECIPES="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
: "${DATA_DIR:?the folder that lmfusion data filled}" "${OUT:?the folder all runs go to}"
: "${SRC:?the name of the source side}" "${TGT:?the name of the target side}"
: "${TEXT_LANG:=}"               # the language of both sides, where they are not named by languages
: "${TOKENIZER:=moses}"          # what splits words before the BPE: moses, or none

# THE NUMBERS of this folder; all others are in recipes/_common.sh. Set any in the environment to override it.
: "${BITEXT_LINES:=all}"
: "${MAX_SOURCE:=250}"           # summarization: symbols of an article that are read
: "${MIN_LEN:=3}" "${MAX_LEN:=60}" "${LENPEN:=1}" "${NO_REPEAT:=3}" # and of a summary, in symbols

NO_SETUP=1
# shellcheck source=../_common.sh
. "$RECIPES/_common.sh"
# shellcheck source=../_rows.sh
. "$RECIPES/_rows.sh"
rows_begin "$RECIPES/own" "$@"
use_prepared

if [[ "$TOKENIZER" == none ]]; then
    TEXT_FLAGS=(--bpe sentencepiece)
elif [[ -n "$TEXT_LANG" ]]; then
    TEXT_FLAGS+=(--tokenizer moses_monolingual --moses-lang "$TEXT_LANG")
fi
if [[ -n "$TEXT_LANG" ]]; then
    TASK_FLAGS=(--truncate-source --max-source-positions "$MAX_SOURCE")
    GENERATE_FLAGS=(--min-len "$MIN_LEN" --max-len-a 0 --max-len-b "$MAX_LEN" --lenpen "$LENPEN"
        --no-repeat-ngram-size "$NO_REPEAT")
    METRIC=rouge
fi

LM_TEXT_FLAGS=("${TEXT_FLAGS[@]}")

if [[ -n "${SRC_PIECES:-}${TGT_PIECES:-}" ]]; then
    TEXT_FLAGS=(--bpe lmfusion)
    side_bpe src "${TEXT_LANG:-$SRC}" "${SRC_PIECES:-}"
    side_bpe tgt "${TEXT_LANG:-$TGT}" "${TGT_PIECES:-}"
fi

# The logits of a large vocabulary would take gigabytes: the same loss, some tokens at a time
if [[ -n "${TGT_PIECES:-}" ]] && (($(wc -l <"$DATA_DIR/dict.$TGT.txt") >= 50000)); then
    TRAIN_CRITERION=chunked_label_smoothed_cross_entropy
fi

# own_lm NAME LANG FLAGS...: a language model of this text, which holds its own tokenizer and BPE
own_lm() {
    local name="$1" lang="$2" own=()
    shift 2
    [[ "$TOKENIZER" == none ]] || own=(--tokenizer moses_monolingual --moses-lang "$lang")
    train_lm "$name" "$lang" "${LM_TEXT_FLAGS[@]}" ${own[@]+"${own[@]}"} --sentencepiece-model "$DATA_DIR/spm.model" "$@"
}

# own_bert: a BERT of the source language's plain text, in which every line counts as a document
own_bert() {
    local lang="${TEXT_LANG:-$SRC}" own=()
    [[ "$TOKENIZER" == none ]] || own=(--tokenizer moses_monolingual --moses-lang "$lang")
    train_bert "bert.$lang" "$DATA_DIR/lm.$lang" "${LM_TEXT_FLAGS[@]}" ${own[@]+"${own[@]}"} \
        --sentencepiece-model "$DATA_DIR/spm.model"
}

# own_denoiser: a denoiser of the plain text of both languages, or of the one that both sides are in
own_denoiser() {
    [[ -z "${SRC_PIECES:-}${TGT_PIECES:-}" ]] || die "a denoiser needs one BPE for both sides: prepare the text without --src-hf"
    if [[ -n "$TEXT_LANG" ]]; then
        denoiser "$TEXT_LANG"
    else
        denoiser "$SRC" "$TGT"
    fi
}

# back_translated: from here on a row trains on plain text of the target language and its translation, too, which reverse.sh
# has made. While speed is measured there is none yet, and the pairs alone do.
back_translated() {
    [[ -z "${TRAIN_ONLY:-}" ]] || return 0
    CORPUS="$DATA_DIR/corpus" SPM="$DATA_DIR/spm.model" DICT="$DATA_DIR/dict.txt" MADE_UP_DIR="$OUT/made-up"
    local longest
    read -r MAX_RATIO longest < <(python -P -c 'import json, sys
settings = json.load(open(sys.argv[1]))["settings"]
print(settings["max_ratio"], settings["max_length"])' "$DATA_DIR/prepare.json")
    PREPARE_FLAGS=(--tokenizer "$TOKENIZER" --max-length "$longest")
    plain_text "$TGT"
    translated reverse "$PLAIN"
    made_up_pairs "back-${MADE_UP:-20000}.$TGT" "$TRANSLATED" "$PLAIN"
    unset SRC_LM_CACHE # three times as many sentences would take as much more of the disk
}

BERT="$OUT/bert.${TEXT_LANG:-$SRC}/checkpoints/checkpoint_best.pt"
SRC_LM="${SRC_LM:-$OUT/lm.${TEXT_LANG:-$SRC}/checkpoints/checkpoint_best.pt}"

target_lm() {
    TGT_LM="${TGT_LM:-$OUT/causal.${TEXT_LANG:-$TGT}/checkpoints/checkpoint_best.pt}"
}
