#!/usr/bin/env bash
# Whole descriptions, each row at the learning rate of those tried with the lowest validation loss; then the table.
#
#   bash recipes/debian_synopsis/whole.sh
#   ROWS="baseline denoising" RATES="0.001 0.003" S2S_UPDATES=2000 OUT=runs/mine bash recipes/debian_synopsis/whole.sh
#
# Every training goes on to its last update. Nothing but the best rate of a row is scored on the test set.
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    0.3 to 0.6 s an update on one core: with these numbers half a day.
# Expect:   a line for each training and choice, then the table, also in OUT/report.md; PAGE=RESULTS.md renews it there.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ALL="${OUT:-runs/debian_synopsis_whole}"
read -ra TRIED <<<"${RATES:-0.001 0.003}"
read -ra NAMES <<<"${ROWS:-baseline shared src_elmo src_elmo_shdemb tgt_elmo src_attend lstm lstm_src_elmo_shdemb denoising}"
[[ " ${NAMES[*]} " == *" lead "* ]] || NAMES=(lead "${NAMES[@]}") # what all are compared with, and costs nothing
export MAX_SOURCE="${MAX_SOURCE:-512}" S2S_UPDATES="${S2S_UPDATES:-4000}" S2S_PATIENCE="${S2S_PATIENCE:--1}"
export DATA_DIR="${DATA_DIR:-$ALL/data}" DENOISER_LR="${DENOISER_LR:-0.003}"
. recipes/_common.sh
[[ -n "${NO_SETUP:-}" || ! -d .venv ]] || PATH="$PWD/.venv/bin:$PATH"

# at RATE ROW: a row's script at this rate. The causal LM and the denoiser of the first rate serve the others as well.
at() {
    local first="$ALL/rate-${TRIED[0]}" other=()
    [[ "$1" == "${TRIED[0]}" || "$2" != denoising ]] || other+=(DENOISER="$first/denoiser/checkpoints/checkpoint_best.pt")
    [[ "$1" == "${TRIED[0]}" || "$2" != tgt_* ]] || other+=(CAUSAL="$first/causal.en/checkpoints/checkpoint_best.pt")
    env "${other[@]+"${other[@]}"}" OUT="$ALL/rate-$1" S2S_LR="$1" bash "recipes/debian_synopsis/$2.sh"
}

for name in "${NAMES[@]}"; do
    [[ -f "recipes/debian_synopsis/$name.sh" ]] || die "ROWS: recipes/debian_synopsis has no $name.sh."
done
for name in "${NAMES[@]}"; do
    tried=()
    for rate in "${TRIED[@]}"; do
        [[ "$name" != lead ]] || break # trains nothing
        printf '%s, learning rate %s\n' "$name" "$rate"
        TRAIN_ONLY=1 at "$rate" "$name"
        tried+=("$ALL/rate-$rate/$name")
    done
    best="$ALL/rate-${TRIED[0]}/$name"
    ((${#tried[@]} == 0)) || best="$(python recipes/lowest_loss.py "${tried[@]}")"
    rate="$(basename "$(dirname "$best")")"
    at "${rate#rate-}" "$name"
done
PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}" python recipes/rates_table.py "$ALL" ${PAGE:+--into "$PAGE"}
