#!/usr/bin/env bash
# WMT'18 English-German: what all rows have in common. Source it, do not run it.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OWN_OPTIONS="--bitext"
BITEXT="${BITEXT:-160K}"
. recipes/_options.sh
paper_options recipes/wmt18_ende "$@"

# THE NUMBERS (SPEC section 2). Set any in the environment to override it.
if [[ "$SCALE" == tiny ]]; then
    : "${PAPER_GPUS:=2}" "${PAPER_TOKENS:=600}" "${UPDATES:=6}" "${MAX_LEN_A:=0}" "${MAX_LEN_B:=9}"
fi
: "${PAPER_GPUS:=128}" "${PAPER_TOKENS:=3584}"  # the released recipe's batch; PAPER_GPUS=8 is the paper's text
: "${GPU_TOKENS:=$PAPER_TOKENS}" # tokens a GPU takes at once; another number changes --update-freq, not the batch
: "${S2S_LR:=7e-4}"
: "${S2S_DROPOUT:=0.3}"          # tuned from 0.1 to 0.4: sweep.sh
: "${S2S_ATTENTION_DROPOUT:=0.1}" # of the released command's architecture
: "${ELMO_DROPOUT:=0.2}" "${FT_DROPOUT:=0.2}"   # of the mixing weights; of the fine-tuned LM's state
: "${FT_ENCODER_LAYERS:=6}"      # tuned for SRC-FT
: "${MAX_LEN_A:=1.2}" "${MAX_LEN_B:=10}"        # longest translation: A x source symbols + B

# updates BATCHES SIZE: how long a bitext of this size is trained on. The paper says 10K to 200K by bitext size with 8 GPUs,
# the released recipe 30K with 128; between these ends the numbers are ours.
updates() {
    case "$1 $2" in
    "128 160K" | "128 320K" | "8 160K") echo 10000 ;;
    "128 640K") echo 15000 ;;
    "128 1280K" | "8 320K") echo 20000 ;;
    "128 2560K") echo 25000 ;;
    "128 5186K") echo 30000 ;;
    "8 640K") echo 40000 ;;
    "8 1280K") echo 80000 ;;
    "8 2560K") echo 120000 ;;
    "8 5186K") echo 200000 ;;
    esac
}

case "$BITEXT" in
160K | 320K | 640K | 1280K | 2560K | 5186K) ;;
*) usage_error "--bitext $BITEXT: give 160K, 320K, 640K, 1280K, 2560K or 5186K." ;;
esac
UPDATES="${UPDATES:-$(updates "$PAPER_GPUS" "$BITEXT")}"
[[ -n "$UPDATES" ]] || usage_error "PAPER_GPUS=$PAPER_GPUS: neither the paper's 8 nor the released recipe's 128; set UPDATES as well."
: "${S2S_VALIDATE_EVERY:=$((UPDATES < 40 ? 2 : UPDATES / 40))}"

SRC=en TGT=de SIZE=_wmt_en_de_big
[[ "$SCALE" == paper ]] || SIZE=_tiny
OUT="$RUNS/wmt18_ende/$BITEXT/seed-$SEED"
. recipes/_paper.sh
paper_begin

CORPUS="$DATA/wmt18_ende" TEXTS="$DATA/wmt18_ende/text" EXTRA=""
[[ "$SCALE" == paper ]] || EXTRA=" --scale tiny"
PAIRS="$CORPUS/bitext-$BITEXT" SPM="$CORPUS/spm.model"
DATA_MEND="Make it: bash data-prep/wmt18_ende.sh --out $DATA --subsets $BITEXT$EXTRA"
SRC_LM="${SRC_LM:-$RUNS/lm/en_cloze.pt}" SRC_LM_MEND="bash recipes/lm/en_cloze.sh$EXTRA"
TGT_LM="${TGT_LM:-$RUNS/lm/de_causal.pt}" TGT_LM_MEND="bash recipes/lm/de_causal.sh$EXTRA"
TEST_SETS=(test:newstest2018:newstest2018)
for year in 2012 2013 2014 2015 2016 2017; do
    TEST_SETS+=("test$((year - 2011)):newstest$year:newstest$year")
done
GENERATE_FLAGS=(--max-len-a "$MAX_LEN_A" --max-len-b "$MAX_LEN_B")
LABELS=(--pair en-de --pairs "${BITEXT%K}000")
. recipes/_paper_rows.sh

# own_bpe: the same pairs with a BPE that was learned on them
own_bpe() {
    PAIRS="$CORPUS/bitext-bpe-$BITEXT" SPM="$CORPUS/bitext-bpe-$BITEXT/spm.model"
    DATA_MEND="Make it: bash data-prep/wmt18_ende.sh --out $DATA --subsets $BITEXT --bitext-bpe $BITEXT$EXTRA"
}
