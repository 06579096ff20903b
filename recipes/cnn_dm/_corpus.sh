#!/usr/bin/env bash
# CNN-DailyMail: what all rows have in common. Source it, do not run it.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. recipes/_options.sh
paper_options recipes/cnn_dm "$@"

# THE NUMBERS (SPEC section 2). Set any in the environment to override it.
if [[ "$SCALE" == tiny ]]; then
    : "${PAPER_GPUS:=2}" "${PAPER_TOKENS:=1200}" "${UPDATES:=6}" "${MIN_LEN:=4}" "${MAX_LEN:=12}"
fi
: "${PAPER_GPUS:=128}" "${PAPER_TOKENS:=3584}"  # the released recipe's 32 GPUs x 4 accumulated batches
: "${GPU_TOKENS:=$PAPER_TOKENS}" # tokens a GPU takes at once; another number changes --update-freq, not the batch
: "${UPDATES:=30000}"            # neither paper nor released recipe tells
: "${S2S_LR:=5e-4}"
: "${S2S_DROPOUT:=0.3}" "${S2S_ATTENTION_DROPOUT:=0.2}"
: "${ELMO_DROPOUT:=0.2}" "${FT_DROPOUT:=0.2}"
: "${MAX_SOURCE:=1024}"          # symbols of an article that are read; 400 tokens have about 500
: "${MIN_LEN:=60}" "${MAX_LEN:=140}" "${LENPEN:=1}" # of a summary, in symbols; the paper tuned the maximum
: "${NO_REPEAT:=3}"              # no such n-gram twice in a summary
: "${S2S_VALIDATE_EVERY:=$((UPDATES < 40 ? 2 : UPDATES / 40))}"
MARKER="¶"                       # between a summary's sentences, in training and scoring

SRC=article TGT=summary SIZE="" # base transformer
[[ "$SCALE" == paper ]] || SIZE=_tiny
OUT="$RUNS/cnn_dm/seed-$SEED"
. recipes/_paper.sh
paper_begin

TEXT_FLAGS+=(--tokenizer moses_monolingual --moses-lang en) # the sides' names are no languages
CORPUS="$DATA/cnn_dm" TEXTS="$DATA/cnn_dm/text" EXTRA=""
[[ "$SCALE" == paper ]] || EXTRA=" --scale tiny"
PAIRS="$CORPUS/bitext-all" SPM="$CORPUS/spm.model"
DATA_MEND="Make it: bash data-prep/cnn_dm.sh --out $DATA$EXTRA"
SRC_LM="${SRC_LM:-$RUNS/lm/cnn_dm_cloze.pt}" SRC_LM_MEND="bash recipes/lm/cnn_dm_cloze.sh$EXTRA"
TGT_LM="${TGT_LM:-$RUNS/lm/cnn_dm_causal.pt}" TGT_LM_MEND="bash recipes/lm/cnn_dm_causal.sh$EXTRA"
TEST_SETS=(test:cnn_dm:test)
TASK_FLAGS=(--truncate-source --max-source-positions "$MAX_SOURCE")
GENERATE_FLAGS=(--min-len "$MIN_LEN" --max-len-a 0 --max-len-b "$MAX_LEN" --lenpen "$LENPEN"
    --no-repeat-ngram-size "$NO_REPEAT")
METRIC_FLAGS=(--metric rouge --sentence-marker "$MARKER")
LABELS=(--data-set cnn_dm)
. recipes/_paper_rows.sh
