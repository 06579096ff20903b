#!/usr/bin/env bash
# Training regimes of minBERT (Wan, Zhao and Lin 2023) on three tasks of the embedded text. One table over three seeds.
#
#   bash recipes/sentences/regimes.sh
#   SENTENCES=6000 EPOCHS=10 OUT=runs/mine bash recipes/sentences/regimes.sh
#   ROWS="siamese siamese-product siamese-cosine adamaxw joint" bash recipes/sentences/regimes.sh          further rows
#   LM=bert.pt bash recipes/sentences/regimes.sh          another language model than the shipped cloze LM
#
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Expect:   the name of each training, then the table, also in OUT/regimes/; PAGE=RESULTS.md renews it there.
# Run it again after an interruption: finished trainings are skipped, a killed one resumes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

sentences_begin "$@"
LM="${LM:-$(shipped en-cloze.pt)}"
ALL="$(places "${NAMES[@]}")"
read -ra EACH <<<"$SEEDS"

# one_by_one ROW SEED PAIRS TASK...: the language model is fine-tuned for each task alone
one_by_one() {
    local row="$1" seed="$2" pairs="$3" task flags
    shift 3
    for task; do
        flags=()
        [[ -z "$pairs" ]] || flags=(--task-pairs "$task=$pairs")
        train_tasks "$row/seed-$seed/$task" "$(places "$task")" --src-lm "$LM" "${TRAINED[@]}" --seed "$seed" \
            ${flags[@]+"${flags[@]}"}
    done
}

# together ROW SEED FLAGS...: the language model is fine-tuned for all tasks at once
together() {
    local row="$1" seed="$2"
    shift 2
    train_tasks "$row/seed-$seed/all" "$ALL" --src-lm "$LM" "${TRAINED[@]}" --seed "$seed" "$@"
}

# one ROW SEED
one() {
    case "$1" in
    frozen) frozen frozen "$LM" "$2" ;;
    fine-tuned) one_by_one "$1" "$2" "" "${NAMES[@]}" ;; # pairs as one text, "concat"
    siamese) one_by_one "$1" "$2" uv synopsis similarity ;;
    siamese-product) one_by_one "$1" "$2" uv_diff_prod synopsis similarity ;;
    siamese-cosine) one_by_one "$1" "$2" cos synopsis similarity ;;
    multi-task) together "$1" "$2" ;;
    # M's "AdamaxW" is fairseq's adamax, whose weight decay is decoupled; the rate falls by a tenth after each epoch
    adamaxw) together "$1" "$2" --optimizer adamax --lr-scheduler fixed --force-anneal 2 --lr-shrink 0.9 ;;
    joint) together "$1" "$2" --schedule joint ;;
    pcgrad) together "$1" "$2" --schedule joint --gradients pcgrad ;;
    smart)
        together "$1" "$2" --smart-weight 1 --smart-epsilon 0.01 --smart-step-size 0.01 --smart-noise 0.001 \
            --bregman-weight 1
        ;;
    *) die "ROWS: $1 is none of frozen fine-tuned siamese siamese-product siamese-cosine multi-task adamaxw joint pcgrad smart." ;;
    esac
}

read -ra CHOSEN <<<"${ROWS:-frozen fine-tuned siamese multi-task pcgrad smart}"
for seed in "${EACH[@]}"; do
    for row in "${CHOSEN[@]}"; do
        one "$row" "$seed"
    done
done
table regimes "${CHOSEN[@]}"
