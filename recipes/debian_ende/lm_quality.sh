#!/usr/bin/env bash
# The gain from a language model against its quality: SRC-ELMO + SHDEMB with cloze LMs trained for fewer and more updates.
#
#   bash recipes/debian_ende/lm_quality.sh
#   LM_UPDATES_TRIED="1000 4000 16000" BITEXT_LINES=10000 OUT=runs/mine bash recipes/debian_ende/lm_quality.sh
#
# The LMs have the shipped one's size, BPE and text. Their learning rate rises for 500 updates (LM_WARMUP) and falls to the end
# of their own training; one of 500 updates ends at its height.
# Prints a table and keeps it, with a figure, in OUT; PAGE=recipes/FIRST_STUDY.md renews it in that page as well.
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    half a second an update of an LM, 0.3 s one of a translation model, on one CPU core with bf16 units.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# THE NUMBERS where they are not those of recipes/_common.sh and debian_ende/_corpus.sh
: "${LM_UPDATES_TRIED:=500 1000 12000}"
export BITEXT_LINES="${BITEXT_LINES:-2500}" S2S_UPDATES="${S2S_UPDATES:-2000}" S2S_PATIENCE="${S2S_PATIENCE:-3}" # the study's
FOLDER="${OUT:-runs/lm_quality}"

case "${1:-}" in
"") ;;
-h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$0"; exit 0 ;;
*) echo "error: $1: lm_quality.sh takes no options. Set numbers in the environment, see --help." >&2; exit 2 ;;
esac
read -ra TRIED <<<"$LM_UPDATES_TRIED"
for updates in "${TRIED[@]}"; do
    [[ "$updates" =~ ^[1-9][0-9]*$ ]] || { echo "error: LM_UPDATES_TRIED: $updates is no number of updates." >&2; exit 2; }
done
if [[ -z "${NO_SETUP:-}" && -f scripts/setup.sh ]]; then
    bash scripts/setup.sh >/dev/null
    PATH="$PWD/.venv/bin:$PATH"
fi
export NO_SETUP=1

echo "baseline"
OUT="$FOLDER" bash recipes/debian_ende/baseline.sh
for updates in "${TRIED[@]}"; do
    models="$FOLDER/cloze-$updates"
    printf 'cloze LM, %d updates\n' "$updates"
    [[ -f "$models/en-cloze.pt" ]] || LM_UPDATES="$updates" bash recipes/pretrain_longer.sh cloze "$models"
    OUT="$FOLDER/with-$updates" DATA_DIR="$FOLDER/data" PRETRAINED="$models" SRC_LM_CACHE="$FOLDER/lm-states" \
        bash recipes/debian_ende/src_elmo_shdemb.sh
    rm -rf "$FOLDER/lm-states" # read in training only, and there is room to save
done
export PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}"
python recipes/lm_quality_table.py "$FOLDER" --updates "${TRIED[@]}" --pairs "$BITEXT_LINES" ${PAGE:+--into "$PAGE"}
