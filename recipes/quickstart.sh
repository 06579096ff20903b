#!/usr/bin/env bash
# Translate with the shipped model, then see how such a model comes about: pretrain a cloze LM, train a baseline and
# SRC-ELMO on the same pairs of the embedded corpus, translate, score.
#
#   bash recipes/quickstart.sh [--minutes N] [--seed S] [--out DIR] [--from-scratch]
#
#   --minutes N      scale the training budgets to about N minutes in all on two CPU cores (default: 8)
#   --seed S         of all training runs (default: 1)
#   --out DIR        the one folder everything goes to (default: runs/quickstart)
#   --from-scratch   use no shipped LM or BPE: learn a BPE, and use the LM of stage 3
#
# Run the same command again after an interruption: it resumes where it stopped. The numbers (sizes, learning rates,
# updates) are in one block at the top of recipes/_common.sh; each can be overridden in the environment.
# Uses a GPU where there is one. NO_SETUP=1 takes the active Python environment instead of making .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

DEFAULT_MINUTES=8
MINUTES=$DEFAULT_MINUTES
OUT=runs/quickstart
FROM_SCRATCH=0
CORPUS="${CORPUS:-data-prep/debian/en-de}"
PRETRAINED="${PRETRAINED:-pretrained}"

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; }

while (($#)); do
    case "$1" in
    --minutes | --seed | --out)
        [[ -n "${2:-}" ]] || { echo "error: $1 needs a value. See --help." >&2 && exit 2; }
        case "$1" in
        --minutes) MINUTES="$2" ;;
        --seed) SEED="$2" ;;
        --out) OUT="$2" ;;
        esac
        shift 2
        ;;
    --from-scratch) FROM_SCRATCH=1 && shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "error: $1: unknown option. See --help." >&2 && exit 2 ;;
    esac
done

# THE NUMBERS that differ from those of recipes/_common.sh: more pairs, each seen a few times, and schedules that end.
: "${BITEXT_LINES:=10000}"
: "${LM_UPDATES:=100}" "${LM_VALIDATE_EVERY:=50}"
: "${S2S_LR:=0.003}" "${S2S_UPDATES:=500}" "${S2S_VALIDATE_EVERY:=125}" "${S2S_PATIENCE:=-1}"
: "${SHIPPED:=6}" # sentences that the shipped model translates

. recipes/_common.sh
. recipes/_stages.sh
[[ "$MINUTES" =~ ^[0-9]+([.][0-9]+)?$ ]] || die "--minutes $MINUTES: give a number, e.g. --minutes 15"
[[ "$SEED" =~ ^[0-9]+$ ]] || die "--seed $SEED: give a whole number"

# scaled NUMBER: NUMBER x minutes / default minutes, at least 4
scaled() { awk -v n="$1" -v m="$MINUTES" -v d="$DEFAULT_MINUTES" 'BEGIN { x = int(n * m / d); print x < 4 ? 4 : x }'; }

LM_UPDATES="$(scaled "$LM_UPDATES")"
S2S_UPDATES="$(scaled "$S2S_UPDATES")"

STAGE_NAMES=(
    "Setting up"
    "Translating with the shipped model, which saw 38,542 sentence pairs"
    "Preparing the embedded corpus: $BITEXT_LINES sentence pairs, English text for the LM"
    "Pretraining an English cloze LM for $LM_UPDATES updates"
    "Training a baseline and SRC-ELMO on the same $BITEXT_LINES pairs"
    "Translating the test set with beam $BEAM, scoring"
)
# seconds on two CPU cores: what the number of updates does not change, and what it does
STAGE_SECONDS=(1 10 40 $((15 + $(scaled 50))) $((40 + $(scaled 240))) 60)

choose_bpe() {
    PREPARE_FLAGS=()
    if ((FROM_SCRATCH)); then
        return
    fi
    local file
    for file in en-cloze.pt spm.model dict.txt en-de.lmf; do
        [[ -f "$PRETRAINED/$file" ]] || die "$PRETRAINED/$file: no such file. Check the repository out again, or use --from-scratch."
    done
    PREPARE_FLAGS=(--spm "$PRETRAINED/spm.model" --dict "$PRETRAINED/dict.txt" --lm-langs "$SRC")
}

# both COMMAND...: COMMAND for the baseline and for SRC-ELMO, beside each other where two cores are free for them.
both() {
    local cores other status=0
    cores="$(python -P -c 'from lmfusion.text.line_map import available_cores; print(available_cores())')"
    if [[ "$GPU" == 1 ]] || ((cores < 2)); then
        "$@" baseline && "$@" src_elmo
        return
    fi
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((cores / 2))}"
    (LIVE_EXEC="exec" && "$@" baseline) > >(cat) 2>&1 & # into a pipe: two live lines cannot share a terminal
    other=$! # at once: a process substitution sets it, too
    "$@" src_elmo > >(cat) || status=$?
    wait "$other" || status=$?
    return "$status"
}

train() {
    case "$1" in
    baseline) train_seq2seq baseline --arch lmfusion_tiny ;;
    src_elmo) train_seq2seq src_elmo "${FUSION[@]}" ;;
    esac
}

show_shipped() {
    if ((FROM_SCRATCH)); then
        echo "  not with --from-scratch"
        return
    fi
    python recipes/show_translations.py "$PRETRAINED/en-de.lmf" "$CORPUS" test "$SRC" "$TGT" "$SHIPPED"
    echo "  Your own sentences: lmfusion translate $PRETRAINED/en-de.lmf"
}

[[ -n "${NO_SETUP:-}" ]] || bash scripts/setup.sh
begin
# shellcheck disable=SC2046,SC2119  # one word a number is what is wanted
stages_begin "minutes=$MINUTES" "from_scratch=$FROM_SCRATCH" $(numbers)
choose_bpe
LM="$PRETRAINED/en-cloze.pt"
if ((FROM_SCRATCH)); then
    LM="$OUT/lm.en/checkpoints/checkpoint_best.pt"
fi

stage 0 true
stage 1 show_shipped
stage 2 prepare "$CORPUS" ${PREPARE_FLAGS[@]+"${PREPARE_FLAGS[@]}"}
use_prepared
stage 3 train_lm lm.en "$SRC" --self-target --arch bi_transformer_lm
if [[ "$GPU" == 0 ]]; then # on a CPU, asking the LM about every sentence once saves time; takes 2 GB
    SRC_LM_CACHE="$OUT/lm-states"
fi
elmo src "$LM"
stage 4 both train
stage 5 both generate
score baseline src_elmo

python -P -m lmfusion.report.compare baseline="$OUT/baseline" SRC-ELMO="$OUT/src_elmo" \
    --source "$TEST_SOURCE" --reference "$TEST_REFERENCE" --save "$OUT/report.txt" \
    --stage "preparing the corpus=$(stage_seconds 2)" --lm "cloze LM of stage 3=$OUT/lm.en"
python -P -m lmfusion.cli report "$OUT/baseline" "$OUT/src_elmo" "$OUT/lm.en" --out "$OUT/report" \
    --title "lmfusion quickstart" --significance >/dev/null
echo "All of it: $OUT (this report: $OUT/report.txt; with figures, to open in a browser: $OUT/report/report.html)"
