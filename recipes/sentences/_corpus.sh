#!/usr/bin/env bash
# Sentence tasks of the embedded text: what regimes.sh and probing.sh have in common. Source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${OUT:-runs/sentences}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"

# THE NUMBERS of this folder. Set any in the environment to override it.
: "${SENTENCES:=300}" "${VALID_SENTENCES:=100}" "${TEST_SENTENCES:=300}" # the first of each task's files
: "${EPOCHS:=2}"                 # the better one on the validation sets counts
: "${BATCH:=16}"                 # examples of a task
: "${HEAD_LR:=0.003}" "${FT_LR:=0.0005}" # frozen language model, and trained
: "${LM_DIM:=128}" "${LM_FFN:=512}" "${LM_LAYERS:=2}" # language models that probing.sh trains
: "${LM_TOKENS:=1024}" "${LM_UPDATES:=400}" "${LM_VALIDATE_EVERY:=400}"

. recipes/_common.sh
. recipes/_rows.sh
RECIPE=recipes/sentences
SEEDS="${SEEDS:-1 2 3}"
NAMES=(section synopsis similarity)

# sentences_begin WORD...: environment, the tasks' texts, the binarized text of language models
sentences_begin() {
    rows_begin "$RECIPE" "$@"
    local task
    mkdir -p "$OUT/tasks"
    for task in "${NAMES[@]}"; do
        cut_file "$task" train "$SENTENCES"
        cut_file "$task" valid "$VALID_SENTENCES"
        cut_file "$task" test "$TEST_SENTENCES"
    done
    SPM="$(shipped spm.model)" DICT="$(shipped dict.txt)"
    TEXT_FLAGS+=(--sentencepiece-model "$SPM")
}

# cut_file TASK SPLIT ROWS: the names of the columns and the first rows
cut_file() {
    xz -dc "data-prep/debian/sentences/$1-$2.tsv.xz" | sed -n "1,$(($3 + 1))p" >"$OUT/tasks/$1-$2.tsv"
}

# places TASK...: --data of these tasks
places() {
    local found=("${@/#/$OUT/tasks/}")
    (IFS=: && printf '%s\n' "${found[*]}")
}

# train_tasks NAME DATA FLAGS...: one training; the test sets are evaluated after each epoch, too, and choose nothing.
train_tasks() {
    local folder="$OUT/runs/$1" data="$2"
    shift 2
    [[ ! -f "$folder/done" ]] || return 0
    mkdir -p "$folder"
    printf '%s\n' "${folder#"$OUT"/runs/}"
    fairseq-train "$data" --user-dir "$USER_DIR" --task lmfusion_sentences --arch lmfusion_heads \
        --criterion sentence_tasks --batch-size "$BATCH" --truncate-texts --max-epoch "$EPOCHS" --clip-norm 1.0 \
        --valid-subset valid,test --best-checkpoint-metric average --maximize-best-checkpoint-metric \
        --save-dir "$folder" --no-epoch-checkpoints --num-workers 0 --log-format json --log-interval 50 \
        "${TEXT_FLAGS[@]}" "${TRAIN_FLAGS[@]}" "$@" >>"$folder/train.log" 2>&1 ||
        die "$folder/train.log: $(tail -n 1 "$folder/train.log")"
    touch "$folder/done"
}

FROZEN=(--src-fusion elmo --src-elmo-affine --optimizer adam --lr "$HEAD_LR")
# shellcheck disable=SC2034  # regimes.sh uses it
TRAINED=(--src-fusion finetune --optimizer adam --weight-decay 0.01 --lr "$FT_LR")

# frozen NAME LM SEED: the heads of all tasks on one frozen language model
frozen() { train_tasks "$1/seed-$3/all" "$(places "${NAMES[@]}")" --src-lm "$2" "${FROZEN[@]}" --seed "$3"; }

# table TITLE ROW...: the report over all seeds
table() {
    local title="$1"
    shift
    # shellcheck disable=SC2086  # seeds are words
    PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}" python "$RECIPE/report.py" "$OUT/runs" --title "$title" \
        --rows "$@" --seeds $SEEDS --save "$OUT/$title" ${PAGE:+--into "$PAGE"}
}
