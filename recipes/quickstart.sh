#!/usr/bin/env bash
# The main job on the embedded corpus: pretrain a cloze LM, use one for translation, score it against a baseline.
#
#   bash recipes/quickstart.sh [--minutes N] [--seed S] [--out DIR] [--from-scratch]
#
#   --minutes N      scale the training budgets to about N minutes in all on two CPU cores (default: 15)
#   --seed S         of all training runs (default: 1)
#   --out DIR        the one folder everything goes to (default: runs/quickstart)
#   --from-scratch   use no shipped LM or BPE: learn a BPE, and use the LM of stage 2
#
# Run the same command again after an interruption: it resumes where it stopped. The numbers (sizes, learning rates,
# updates) are in one block at the top of recipes/_common.sh; each can be overridden in the environment.
# Uses a GPU where there is one. NO_SETUP=1 takes the active Python environment instead of making .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

DEFAULT_MINUTES=15
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
    "Preparing the embedded corpus: $BITEXT_LINES sentence pairs, English text for the LM"
    "Pretraining an English cloze LM for $LM_UPDATES updates"
    "Choosing the LM"
    "Training the baseline on $BITEXT_LINES pairs"
    "Training SRC-ELMO + SHDEMB on the same pairs"
    "Translating the test set with beam $BEAM, scoring"
)
# seconds on two CPU cores: what the number of updates does not change, and what it does
STAGE_SECONDS=(1 40 $((15 + $(scaled 130))) 1 $((15 + $(scaled 250))) $((25 + $(scaled 380))) 70)

choose_bpe() {
    PREPARE_FLAGS=()
    if ((FROM_SCRATCH)); then
        return
    fi
    local file
    for file in en-cloze.pt spm.model dict.txt; do
        [[ -f "$PRETRAINED/$file" ]] || die "$PRETRAINED/$file: no such file. Check the repository out again, or use --from-scratch."
    done
    PREPARE_FLAGS=(--spm "$PRETRAINED/spm.model" --dict "$PRETRAINED/dict.txt" --lm-langs "$SRC")
}

choose_lm() {
    if ((FROM_SCRATCH)); then
        echo "  its own, from stage 2: $LM"
    else
        echo "  the shipped one, $LM: pretrained longer on the same text (see pretrained/README.md)"
    fi
}

translate_and_score() {
    local name
    for name in baseline src_elmo_shdemb; do
        generate "$name"
    done
    score baseline src_elmo_shdemb
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
stage 1 prepare "$CORPUS" ${PREPARE_FLAGS[@]+"${PREPARE_FLAGS[@]}"}
use_prepared
stage 2 train_lm lm.en "$SRC" --self-target --arch bi_transformer_lm
stage 3 choose_lm
stage 4 train_seq2seq baseline --arch lmfusion_tiny
src_elmo_shdemb "$LM"
if [[ "$GPU" == 0 ]]; then # on a CPU, asking the LM about every sentence once saves a quarter of the time; takes 0.4 GB
    SRC_ELMO_SHDEMB+=(--src-lm-cache "$OUT/lm-states" --src-lm-cache-half)
fi
stage 5 train_seq2seq src_elmo_shdemb "${SRC_ELMO_SHDEMB[@]}"
stage 6 translate_and_score

python -m lmfusion.report.compare baseline="$OUT/baseline" SRC-ELMO+SHDEMB="$OUT/src_elmo_shdemb" \
    --source "$TEST_SOURCE" --reference "$TEST_REFERENCE" --save "$OUT/report.txt" \
    --stage "preparing the corpus=$(stage_seconds 1)" --lm "cloze LM of stage 2=$OUT/lm.en"
python -m lmfusion.cli report "$OUT/baseline" "$OUT/src_elmo_shdemb" "$OUT/lm.en" --out "$OUT/report" \
    --title "lmfusion quickstart" --significance >/dev/null
echo "All of it: $OUT (this report: $OUT/report.txt; with figures, to open in a browser: $OUT/report/report.html)"
