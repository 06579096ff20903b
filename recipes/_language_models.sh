#!/usr/bin/env bash
# Pretraining of language models, for _common.sh, which sources this: the numbers are there.

# train_lm NAME LANG FLAGS...: one language model. FLAGS choose it:
#   cloze:  --self-target --arch bi_transformer_lm
#   causal: --arch uni_transformer_lm
train_lm() {
    local name="$1" lang="$2" shape=(--decoder-embed-dim "$LM_DIM" --decoder-ffn-embed-dim "$LM_FFN"
        --decoder-layers "$LM_LAYERS" --decoder-attention-heads "$LM_HEADS" --share-decoder-input-output-embed
        --dropout "$LM_DROPOUT" --attention-dropout "$LM_ATTENTION_DROPOUT" --activation-dropout 0.05)
    shift 2
    ((${#LM_SHAPE[@]} == 0)) || shape=("${LM_SHAPE[@]}")
    bookkeeping "$LM_VALIDATE_EVERY" "$OUT/$name"
    live "$OUT/$name" train --label "$name" --updates "$LM_UPDATES" --show-validation --seed "$SEED" \
        --data "$DATA_DIR/lm.$lang" -- \
        fairseq-train "$DATA_DIR/lm.$lang" --task language_modeling --sample-break-mode eos --tokens-per-sample 256 \
        "${shape[@]}" --criterion cross_entropy --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 \
        --lr "$LM_LR" --lr-scheduler polynomial_decay --warmup-updates "$LM_WARMUP" --end-learning-rate 1e-5 \
        --total-num-update "${LM_TOTAL:-$LM_UPDATES}" --max-update "$LM_UPDATES" --max-tokens "$LM_TOKENS" \
        "${BOOKKEEPING[@]}" "$@"
}

# save_lm NAME FILE: the best checkpoint of a language model as $OUT/FILE, in half precision, for rows to read.
save_lm() {
    python -P -m lmfusion.cli export "$OUT/$1/checkpoints/checkpoint_best.pt" --half --out "$OUT/$2.partial"
    mv "$OUT/$2.partial" "$OUT/$2"
}

# train_bert NAME FOLDER FLAGS...: one BERT on FOLDER's documents, of the size and the budget of train_lm. It is no number of
# the block above, which is what folders were begun with: BERT_LR, the learning rate at its highest.
train_bert() {
    local name="$1" folder="$2"
    shift 2
    bookkeeping "$LM_VALIDATE_EVERY" "$OUT/$name"
    live "$OUT/$name" train --label "$name" --updates "$LM_UPDATES" --show-validation --seed "$SEED" --data "$folder" -- \
        fairseq-train "$folder" --task bert_pretraining --criterion bert_pretraining --tokens-per-sample 256 \
        --arch bert_lm --decoder-embed-dim "$LM_DIM" --decoder-ffn-embed-dim "$LM_FFN" --decoder-layers "$LM_LAYERS" \
        --decoder-attention-heads "$LM_HEADS" --dropout "$LM_DROPOUT" --attention-dropout "$LM_ATTENTION_DROPOUT" \
        --optimizer adam --adam-betas '(0.9, 0.98)' --weight-decay 0.01 --clip-norm 1.0 \
        --lr "${BERT_LR:-0.001}" --lr-scheduler polynomial_decay --warmup-updates "$LM_WARMUP" --end-learning-rate 1e-5 \
        --total-num-update "$LM_UPDATES" --max-update "$LM_UPDATES" --max-tokens "$LM_TOKENS" \
        "${BOOKKEEPING[@]}" "$@"
}
