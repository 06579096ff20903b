#!/usr/bin/env bash
# Description -> synopsis on the embedded corpus: what all rows have in common. Source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${OUT:-runs/debian_synopsis}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"
SRC=description TGT=synopsis

# THE NUMBERS of this corpus; all others are in recipes/_common.sh. Set any in the environment to override it.
: "${BITEXT_LINES:=10000}" "${MAX_RATIO:=0}"
: "${S2S_UPDATES:=2000}" "${S2S_TOKENS:=2000}"
: "${MAX_SOURCE:=64}"            # symbols of a description that are read, </s> included
: "${MIN_LEN:=3}" "${MAX_LEN:=30}" "${LENPEN:=1}" # of a synopsis, in symbols
: "${NO_REPEAT:=3}"              # no such n-gram twice in a synopsis
# the English causal LM of TGT-ELMO and TGT-FT, of the shipped German one's size
: "${LM_LAYERS:=3}" "${LM_UPDATES:=2000}" "${LM_WARMUP:=300}" "${LM_VALIDATE_EVERY:=500}"

. recipes/_common.sh
. recipes/_rows.sh
rows_begin recipes/debian_synopsis "$@"

TEXT_FLAGS+=(--tokenizer moses_monolingual --moses-lang en) # the sides' names are no languages
TASK_FLAGS=(--truncate-source --max-source-positions "$MAX_SOURCE")
GENERATE_FLAGS=(--min-len "$MIN_LEN" --max-len-a 0 --max-len-b "$MAX_LEN" --lenpen "$LENPEN"
    --no-repeat-ngram-size "$NO_REPEAT")
METRIC=rouge

# prepare_synopses LANG...: the pairs, and monolingual text of these languages
prepare_synopses() {
    prepare "$CORPUS" --pairs synopsis --text-lang en --spm "$SPM" --dict "$DICT" --lm-langs "$@"
}

# shellcheck disable=SC2034  # rows use it
SRC_LM="$(shipped en-cloze.pt)"
SPM="$(shipped spm.model)" DICT="$(shipped dict.txt)"
prepare_synopses

# target_lm: an English causal LM, which is trained where there is none; CAUSAL names a checkpoint to be taken. Sets TGT_LM.
target_lm() {
    TGT_LM="${CAUSAL:-}"
    [[ -z "$TGT_LM" ]] || return 0
    prepare_synopses en
    train_lm causal.en en --arch uni_transformer_lm
    # shellcheck disable=SC2034  # rows use it
    TGT_LM="$OUT/causal.en/checkpoints/checkpoint_best.pt"
}

# plain_text_denoiser: a denoiser of the English plain text, which restores what it can read and so learns to copy. Sets DENOISER.
plain_text_denoiser() {
    prepare_synopses en
    DENOISER_UPDATES="${DENOISER_UPDATES:-3000}" LM_VALIDATE_EVERY=500 denoiser en
}
