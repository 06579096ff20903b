#!/usr/bin/env bash
# WMT'18 English-Turkish: what all rows have in common. Source it, do not run it.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. recipes/_options.sh
paper_options recipes/wmt18_entr "$@"

# THE NUMBERS: those of English-German at the nearest bitext size. Set any in the environment to override it.
if [[ "$SCALE" == tiny ]]; then
    : "${PAPER_GPUS:=2}" "${PAPER_TOKENS:=600}" "${UPDATES:=6}" "${MAX_LEN_A:=0}" "${MAX_LEN_B:=9}"
fi
: "${PAPER_GPUS:=128}" "${PAPER_TOKENS:=3584}"
: "${GPU_TOKENS:=$PAPER_TOKENS}" # tokens a GPU takes at once; another number changes --update-freq, not the batch
: "${UPDATES:=10000}" "${S2S_LR:=7e-4}"
: "${S2S_DROPOUT:=0.3}"          # tuned from 0.1 to 0.4: sweep.sh
: "${S2S_ATTENTION_DROPOUT:=0.1}" # of the released command's architecture
: "${ELMO_DROPOUT:=0.2}" "${FT_DROPOUT:=0.2}"
: "${MAX_LEN_A:=1.2}" "${MAX_LEN_B:=10}"        # longest translation: A x source symbols + B
: "${S2S_VALIDATE_EVERY:=$((UPDATES < 40 ? 2 : UPDATES / 40))}"

SRC=en TGT=tr SIZE=_wmt_en_de_big
[[ "$SCALE" == paper ]] || SIZE=_tiny
OUT="$RUNS/wmt18_entr/seed-$SEED"
. recipes/_paper.sh
paper_begin

CORPUS="$DATA/wmt18_entr" TEXTS="$DATA/wmt18_entr/text" EXTRA=""
[[ "$SCALE" == paper ]] || EXTRA=" --scale tiny"
PAIRS="$CORPUS/bitext-all" SPM="$CORPUS/spm.model" # the English side's; joining symbols to words needs no other
DATA_MEND="Make it: bash data-prep/wmt18_entr.sh --out $DATA$EXTRA"
SRC_LM="${SRC_LM:-$RUNS/lm/en_cloze.pt}" SRC_LM_MEND="bash recipes/lm/en_cloze.sh$EXTRA"
TEST_SETS=(test:newstest2018:test valid:newstest2017:valid) # developed on newstest2017
GENERATE_FLAGS=(--max-len-a "$MAX_LEN_A" --max-len-b "$MAX_LEN_B")
LABELS=(--pair en-tr --pairs 208000)
. recipes/_paper_rows.sh
