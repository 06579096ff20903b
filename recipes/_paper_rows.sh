#!/usr/bin/env bash
# A row of the paper's tables: train, average, generate, score, compare. Source it after _paper.sh, do not run it.
#
# The folder's _corpus.sh gives SRC TGT, PAIRS (folder of the binarized pairs), SPM, SIZE (_wmt_en_de_big, _tiny or
# nothing), TEST_SETS (words SUBSET:NAME:TEXT, the main one first), TEXTS (folder of the raw text), LABELS (flags of
# beside_published.py), TASK_FLAGS, GENERATE_FLAGS, METRIC_FLAGS, and SRC_LM, TGT_LM with their fixes.
# shellcheck disable=SC2034,SC2153  # what sources this uses and sets them
set -euo pipefail
. recipes/_stages.sh

# All rows in a folder share their numbers, but for those that are tuned for each row and those that change no result.
OF_A_ROW='DROPOUT=|^FT_ENCODER_LAYERS=|^GPU_TOKENS=|^NUM_WORKERS=|^LOG_EVERY=|^GENERATE_SENTENCES='
if [[ -z "$DRY_RUN" ]]; then
    # shellcheck disable=SC2046  # one word a number is what is wanted
    OUT_OPTION="--runs DIR" same_settings $(numbers "$ROOT/recipes/_paper.sh" "$RECIPE/_corpus.sh" | grep -vE "$OF_A_ROW")
fi

RUN="$ROW${VARIANT:+.$VARIANT}" # a row's run folder is called as its script; VARIANT tells settings of it apart

# source_lm, target_lm: check that the language model is there
source_lm() { need "$SRC_LM" "Pretrain it: $SRC_LM_MEND. Or name another: SRC_LM=FILE"; }
target_lm() { need "$TGT_LM" "Pretrain it: $TGT_LM_MEND. Or name another: TGT_LM=FILE"; }

# plain: sets MODEL to a transformer without a language model.
plain() { MODEL=(--arch "lmfusion$SIZE"); }

# elmo_side SIDE LM: sets MODEL to one whose SIDE (src, tgt) reads a mix of the frozen LM's layers.
elmo_side() { MODEL=(--arch "$1_elmo$SIZE" --"$1"-lm "$2" --"$1"-elmo-dropout "$ELMO_DROPOUT" --"$1"-elmo-affine); }

# finetune_side SIDE LM: sets MODEL to one whose SIDE reads the LM's top state and trains it.
finetune_side() { MODEL=(--arch "$1_ft$SIZE" --"$1"-lm "$2" --"$1"-representation-dropout "$FT_DROPOUT"); }

# train_row FLAGS...: Adam, inverse square root, label smoothing (SPEC section 2)
train_row() {
    paper_bookkeeping "$S2S_VALIDATE_EVERY" "$OUT/$RUN"
    live "$OUT/$RUN" train --label "$RUN" --updates "$UPDATES" --seed "$SEED" --data "$PAIRS" -- \
        fairseq-train "$PAIRS" -s "$SRC" -t "$TGT" --task translation "$@" \
        --dropout "$S2S_DROPOUT" --attention-dropout "$S2S_ATTENTION_DROPOUT" \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
        --optimizer adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-8 --clip-norm 0.0 \
        --lr "$S2S_LR" --lr-scheduler inverse_sqrt --warmup-updates "$S2S_WARMUP" --warmup-init-lr 1e-7 \
        --max-update "$UPDATES" "${BOOKKEEPING[@]}" --keep-best-checkpoints "$AVERAGE" \
        "${TEXT_FLAGS[@]}" --sentencepiece-model "$SPM" ${TASK_FLAGS[@]+"${TASK_FLAGS[@]}"}
}

# average_row: the checkpoints of the lowest validation loss into one
average_row() {
    local folder="$OUT/$RUN/checkpoints"
    local best=("$folder"/checkpoint.best_loss_*.pt) average="$folder/checkpoint_average.pt"
    [[ ! -f "$average" ]] || return 0
    if [[ -n "$DRY_RUN" ]]; then
        printf '\n# %s: average\nlmfusion average %s --out %s\n' "$OUT/$RUN" "${best[*]}" "$average"
    elif ((${#best[@]} == 1)); then
        cp "${best[0]}" "$average.partial"
        mv "$average.partial" "$average"
        printf '  %s: one checkpoint only, nothing to average\n' "$RUN"
    else
        printf '  %s: ' "$RUN"
        lmfusion average "${best[@]}" --out "$average"
    fi
}

# test_row SUBSET NAME TEXT: generate one test set and score it against TEXT, into scores.json under NAME
test_row() {
    local step="generate.$2" source="$TEXTS/$3.$SRC" reference="$TEXTS/$3.$TGT" count=0
    [[ "${TEST_SETS[0]}" != "$1:$2:$3" ]] || step=generate # the set that reports show speed and examples of
    [[ ! -f "$reference" ]] || count="$(wc -l <"$reference")"
    live "$OUT/$RUN" "$step" --label "$RUN, $2" --sentences "$count" --data "$PAIRS" -- \
        fairseq-generate "$PAIRS" -s "$SRC" -t "$TGT" --path "$OUT/$RUN/checkpoints/checkpoint_average.pt" \
        --gen-subset "$1" --beam "$BEAM" --batch-size "$GENERATE_SENTENCES" --num-workers 0 \
        --distributed-world-size 1 "${TEXT_FLAGS[@]}" --sentencepiece-model "$SPM" \
        --user-dir "$USER_DIR" ${DEVICE_FLAGS[@]+"${DEVICE_FLAGS[@]}"} \
        ${TASK_FLAGS[@]+"${TASK_FLAGS[@]}"} ${GENERATE_FLAGS[@]+"${GENERATE_FLAGS[@]}"}
    score_row "$step" "$2" "$source" "$reference"
}

# score_row STEP NAME SOURCE REFERENCE
score_row() {
    do_or_show python -P -m lmfusion.runs.hypotheses "$OUT/$RUN" --step "$1" --data-set "$2" --source "$3" \
        --reference "$4" ${METRIC_FLAGS[@]+"${METRIC_FLAGS[@]}"}
}

# compare_row: our scores, and the published ones beside them
compare_row() {
    do_or_show python "$ROOT/recipes/beside_published.py" "$OUT/$RUN" --row "$ROW" "${LABELS[@]}"
}

# row FLAGS...: all of it. FLAGS are what the model is.
row() {
    need "$PAIRS" "$DATA_MEND"
    train_row "$@"
    [[ -z "$TRAIN_ONLY" ]] || return 0
    average_row
    local set subset name text
    for set in "${TEST_SETS[@]}"; do
        IFS=: read -r subset name text <<<"$set"
        test_row "$subset" "$name" "$text"
    done
    compare_row
}

# lead_row COUNT: instead of a model, each text's first sentences
lead_row() {
    local name text count=0
    need "$PAIRS" "$DATA_MEND"
    IFS=: read -r _ name text <<<"${TEST_SETS[0]}"
    [[ ! -f "$TEXTS/$text.$TGT" ]] || count="$(wc -l <"$TEXTS/$text.$TGT")"
    live "$OUT/$RUN" generate --label "$RUN, $name" --sentences "$count" --data "$PAIRS" -- \
        python data-prep/lead.py "$TEXTS/$text.$SRC" --sentences "$1" --sentence-marker "$MARKER"
    score_row generate "$name" "$TEXTS/$text.$SRC" "$TEXTS/$text.$TGT"
    compare_row
}

# all_rows ROW...: one after the other, those too that come after a failed one; then our scores beside the published.
# WORDS is the command line, handed on.
all_rows() {
    local name status failed="" folders=()
    for name in "$@"; do
        printf '\n== %s\n' "$name"
        status=0
        bash "$RECIPE/$name.sh" ${WORDS[@]+"${WORDS[@]}"} || status=$?
        ((status < 128)) || exit "$status" # interrupted
        ((status == 0)) || failed="$failed $name"
        folders+=("$OUT/$name")
    done
    [[ -n "$TRAIN_ONLY" ]] || do_or_show python "$ROOT/recipes/beside_published.py" "${folders[@]}" "${LABELS[@]}"
    [[ -z "$failed" ]] || die "failed:$failed. What they said is above and in $OUT/ROW/*.log; run this again to resume."
}

# sweep_row NAME: train a row with every dropout, and test the one of the lowest validation loss.
sweep_row() {
    local name="$1" dropout lm variant best variants=()
    for dropout in $DROPOUTS; do
        for lm in ${LM_DROPOUTS:-default}; do
            variant="dropout-$dropout"
            [[ "$lm" == default ]] || variant="$variant.lm-$lm"
            variants+=("$OUT/$name.$variant")
            sweep_one "$name" "$variant" --train-only
        done
    done
    best="$(do_or_show python "$ROOT/recipes/lowest_loss.py" "${variants[@]}")"
    if [[ -n "$DRY_RUN" ]]; then
        printf '\n%s\n# Tested is the one this names, for example:\n' "$best"
        best="${variants[0]}"
    fi
    [[ -n "$TRAIN_ONLY" ]] || sweep_one "$name" "${best#"$OUT/$name."}"
}

# sweep_one NAME VARIANT [--train-only]: the row with the variant's dropouts
sweep_one() {
    local lm="${2#*.lm-}" dropout="${2#dropout-}"
    [[ "$lm" != "$2" ]] || lm=""
    VARIANT="$2" S2S_DROPOUT="${dropout%.lm-*}" ELMO_DROPOUT="${lm:-$ELMO_DROPOUT}" FT_DROPOUT="${lm:-$FT_DROPOUT}" \
        bash "$RECIPE/$1.sh" ${WORDS[@]+"${WORDS[@]}"} ${3+"$3"}
}
