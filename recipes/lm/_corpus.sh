#!/usr/bin/env bash
# Pretraining of language models: what all four have in common. Source it, do not run it.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OWN_OPTIONS="--optimizer"
OPTIMIZER="${OPTIMIZER:-nag}"
. recipes/_options.sh
paper_options recipes/lm "$@"
[[ "$OPTIMIZER" == nag || "$OPTIMIZER" == adam ]] || usage_error "--optimizer $OPTIMIZER: give nag (the paper's) or adam."

# THE NUMBERS (SPEC section 1). Set any in the environment to override it.
if [[ "$SCALE" == tiny ]]; then
    : "${PAPER_GPUS:=2}" "${PAPER_TOKENS:=400}" "${LM_UPDATES:=4}" "${LM_WARMUP:=2}" "${LM_VALIDATE_EVERY:=2}"
    LM_SIZE=(--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-layers 2 --decoder-attention-heads 2)
    BIG=""
else
    LM_SIZE=()
    BIG=_big                     # N = 12, d 1024, FFN 4096, 16 heads
fi
: "${PAPER_GPUS:=32}" "${PAPER_TOKENS:=2480}"   # the paper's batch: GPUs x tokens
: "${GPU_TOKENS:=$PAPER_TOKENS}" # tokens a GPU takes at once; another number changes --update-freq, not the batch
: "${LM_DROPOUT:=0.1}" "${LM_ATTENTION_DROPOUT:=0.1}" "${LM_RELU_DROPOUT:=0.05}"
: "${LM_VALIDATE_EVERY:=4000}"   # updates; as often a checkpoint is written
: "${LM_MAX_SENTENCE:=1024}"     # symbols; the longest sentence or article that a model with this LM can read

# Learning rates. nag: linear from 1e-7 to 1.0, then one cosine phase to 1e-4. fairseq's --lr is the maximum, --min-lr the
# end of the cosine; its phase lasts to the last update, for behind it the learning rate would restart at 1.0.
# adam: for one to eight GPUs, in bf16; not the paper's, its numbers are ours and untuned.
if [[ "$OPTIMIZER" == nag ]]; then
    : "${LM_UPDATES:=984000}" "${LM_WARMUP:=16000}" "${LM_LR:=1.0}" "${LM_LR_END:=1e-4}"
    LM_OPTIMIZER=(--optimizer nag --momentum 0.99 --clip-norm 0.1 --lr "$LM_LR"
        --lr-scheduler cosine --min-lr "$LM_LR_END" --warmup-init-lr 1e-7 --warmup-updates "$LM_WARMUP"
        --lr-period-updates "$((LM_UPDATES - LM_WARMUP))" --t-mult 1 --lr-shrink 1)
else
    : "${LM_UPDATES:=400000}" "${LM_WARMUP:=10000}" "${LM_LR:=5e-4}" "${PRECISION:=bf16}"
    LM_OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-8 --clip-norm 1.0 --lr "$LM_LR"
        --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates "$LM_WARMUP")
fi

CLOZE=(--self-target --arch "bi_transformer_lm$BIG" ${LM_SIZE[@]+"${LM_SIZE[@]}"})
CAUSAL=(--arch "uni_transformer_lm$BIG" ${LM_SIZE[@]+"${LM_SIZE[@]}"})

OUT="$RUNS/lm"
. recipes/_paper.sh
paper_begin

# pretrain CORPUS LANG FLAGS...: train on $DATA/CORPUS/lm.LANG, and write the model alone to $OUT/$ROW.pt
pretrain() {
    local name="$ROW" data="$DATA/$1/lm.$2" fix="bash data-prep/$1.sh --out $DATA"
    shift 2
    [[ "$SCALE" == paper ]] || fix="$fix --scale tiny"
    [[ "$OPTIMIZER" == nag ]] || name="$ROW.$OPTIMIZER"
    need "$data" "Make it: $fix"
    paper_bookkeeping "$LM_VALIDATE_EVERY" "$OUT/$name"
    live "$OUT/$name" train --label "$name" --updates "$LM_UPDATES" --show-validation --seed "$SEED" --data "$data" -- \
        fairseq-train "$data" --task language_modeling --sample-break-mode eos --tokens-per-sample "$LM_MAX_SENTENCE" \
        "$@" --share-decoder-input-output-embed \
        --dropout "$LM_DROPOUT" --attention-dropout "$LM_ATTENTION_DROPOUT" --relu-dropout "$LM_RELU_DROPOUT" \
        --criterion cross_entropy "${LM_OPTIMIZER[@]}" --max-update "$LM_UPDATES" \
        --skip-invalid-size-inputs-valid-test "${BOOKKEEPING[@]}"
    do_or_show lmfusion export "$OUT/$name/checkpoints/checkpoint_best.pt" --out "$OUT/$name.pt"
}
