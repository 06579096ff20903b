#!/usr/bin/env bash
# What the folders with a script per row of the paper's table share. Source it, do not run it.
#
# A folder's _corpus.sh sets its numbers, sources _common.sh and this, calls rows_begin, prepares its corpus, and gives
#   SRC_LM       a cloze LM of the source side
#   target_lm    a function that sets TGT_LM, a causal LM of the target side, after pretraining it where there is none
# A row then is a line or two: what it adds to the baseline.
# shellcheck disable=SC2034  # what is set here is for the scripts around it
set -euo pipefail
. "$ROOT/recipes/_stages.sh"
. "$ROOT/recipes/_made_up.sh"

# THE NUMBERS that only rows need
: "${FT_SCALE:=1}"               # what SRC-FT and TGT-FT multiply the LM's top state by: it comes with a deviation of 2
: "${FT_DROPOUT:=0.0}"           # on that state

# rows_begin FOLDER WORD...: FOLDER is the recipe's, WORD... its command line. Environment, device; other numbers than
# those that $OUT was begun with are refused, so that all rows in it can be compared.
rows_begin() {
    RECIPE="$1" ROW="$(basename "$0" .sh)" OUT_OPTION="OUT=FOLDER"
    shift
    case "${1:-}" in
    "") ;;
    -h | --help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$RECIPE/$ROW.sh"; exit 0 ;;
    *) die "$1: $ROW.sh takes no options. Set numbers in the environment: S2S_UPDATES=500 bash $RECIPE/$ROW.sh" ;;
    esac
    [[ -n "${NO_SETUP:-}" || ! -f "$ROOT/scripts/setup.sh" ]] || bash "$ROOT/scripts/setup.sh" >/dev/null
    begin
    # shellcheck disable=SC2046  # one word a number is what is wanted
    same_settings $(numbers "$ROOT/recipes/_rows.sh" "$RECIPE/_corpus.sh")
}

# shipped FILE: a file of pretrained/; PRETRAINED names another folder.
shipped() {
    local file="${PRETRAINED:-pretrained}/$1"
    [[ -f "$file" ]] || die "$file: no such file. Check the repository out again, or set PRETRAINED to its folder."
    printf '%s\n' "$file"
}

# bitext_bpe: a BPE of BPE_SIZE symbols learned on the training pairs alone. Sets SPM and DICT, and DATA_DIR to a folder of
# its own, to be prepared with them.
bitext_bpe() {
    local text="$DATA_DIR/tok" side
    DATA_DIR="$DATA_DIR/bpe-$BPE_SIZE-of-$BITEXT_LINES"
    SPM="$DATA_DIR/learned/spm.model" DICT="$DATA_DIR/learned/dict.txt"
    [[ ! -f "$SPM" ]] || return 0
    local work="$DATA_DIR/learned/$$" # its own, for several seeds may begin at once; all learn the same
    mkdir -p "$work"
    for side in "$SRC" "$TGT"; do
        head -n "$BITEXT_LINES" "$text/train.$side" >"$work/$side"
    done
    python "$ROOT/data-prep/learn_bpe.py" --input "$work/$SRC" "$work/$TGT" --size "$BPE_SIZE" \
        --model "$work/spm.model" --dict "$work/dict.txt"
    mv "$work/dict.txt" "$DICT"
    mv "$work/spm.model" "$SPM"
    rm -r "$work"
}

# prepare_pairs: the pairs of $CORPUS with the shipped BPE, or with BITEXT_BPE set with one of the training pairs: BPE_SIZE, no
# number of its own, says of how many symbols. Sets SPM, DICT.
prepare_pairs() {
    SPM="$(shipped spm.model)" DICT="$(shipped dict.txt)"
    prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs
    [[ -n "${BITEXT_BPE:-}" ]] || return 0
    bitext_bpe
    prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs
}

# side_bpe SIDE LANG PIECES: adds the flags of a side to TEXT_FLAGS=(--bpe lmfusion): the pieces of a Hugging Face model, a
# file that data preparation wrote, or without one the BPE of $DATA_DIR, with Moses before it unless TOKENIZER=none.
side_bpe() {
    if [[ -n "$3" ]]; then
        TEXT_FLAGS+=("--$1-bpe" "pieces:$3")
    else
        TEXT_FLAGS+=("--$1-bpe" "sentencepiece:$DATA_DIR/spm.model")
        [[ "${TOKENIZER:-moses}" == none ]] || TEXT_FLAGS+=("--$1-moses" "$2")
    fi
}

# finetune SIDE LM: sets FUSION to the flags of a model whose SIDE (src, tgt) reads the LM's top state and trains it, at
# FT_LR_SCALE times the learning rate of the rest (1; no number of the block above).
finetune() {
    FUSION=(--arch "$1_ft_tiny" --"$1"-lm "$2" --"$1"-embed-scale "$FT_SCALE"
        --"$1"-representation-dropout "$FT_DROPOUT")
    [[ -z "${FT_LR_SCALE:-}" ]] || FUSION+=(--"$1"-lm-lr-scale "$FT_LR_SCALE")
}

# finetune_bert LM: the same on the source side for a BERT, which has its normalization behind each block: at the full rate
# of a translation model it comes to give every word the same state, see docs/bert.md.
finetune_bert() {
    FT_LR_SCALE="${FT_LR_SCALE:-0.1}"
    finetune src "$1"
}

# earlier_lm KIND: sets SRC_LM to a language model that pretrain_earlier.sh makes, which is trained where
# there is none; EARLIER names another folder than runs/earlier.
earlier_lm() {
    local folder="${EARLIER:-runs/earlier}"
    SRC_LM="$folder/$(bash "$ROOT/recipes/pretrain_earlier.sh" "$1" --file)"
    [[ -f "$SRC_LM" ]] || bash "$ROOT/recipes/pretrain_earlier.sh" "$1" "$folder"
}

# lstm: from here on the rows train fairseq's LSTM with attention, about as large as the transformer of the same S2S_DIM;
# sets FUSION to its flags without a language model.
lstm() {
    local layers="${LSTM_LAYERS:-1}"
    S2S_SHAPE=(--encoder-embed-dim "$S2S_DIM" --encoder-bidirectional --encoder-layers "$layers"
        --decoder-embed-dim "$S2S_DIM" --decoder-hidden-size $((2 * S2S_DIM)) --decoder-layers "$layers"
        --decoder-out-embed-dim "$S2S_DIM" --decoder-attention "${LSTM_ATTENTION:-general}" --dropout "$S2S_DROPOUT")
    if [[ -f "$OUT/$ROW/run.json" ]] && ! grep -q -- --cpu-bf16 "$OUT/$ROW/run.json"; then
        TRAIN_FLAGS=("${DEVICE_FLAGS[@]}") # begun when LSTMs had no --cpu-bf16
    fi
    FUSION=(--arch lstm_lmfusion)
    TRAIN_CRITERION=label_smoothed_cross_entropy # the chunked ones are for transformers, too
}

# lstm_src_elmo LM: the same, and the encoder reads a learned mix of the frozen LM's layers.
lstm_src_elmo() {
    lstm
    FUSION+=(--src-fusion elmo --src-lm "$1" --src-elmo-dropout "$ELMO_DROPOUT" --src-elmo-affine)
    lm_cache
}

# prefix_lm: from here on the rows train a decoder-only model, source and target in one row, with as many parameters in its
# layers as the transformer has in encoder and decoder (those of a decoder layer are 4/3 of an encoder layer's); sets FUSION
# to its flags. PREFIX_LAYERS gives another number of layers.
prefix_lm() {
    S2S_SHAPE=(--decoder-embed-dim "$S2S_DIM" --decoder-ffn-embed-dim "$S2S_FFN" --decoder-attention-heads "$S2S_HEADS"
        --decoder-layers "${PREFIX_LAYERS:-$((S2S_LAYERS * 7 / 3))}" --share-decoder-input-output-embed
        --dropout "$S2S_DROPOUT" --attention-dropout "$S2S_ATTENTION_DROPOUT")
    FUSION=(--arch prefix_lm)
}

# transformer_to_denoise, lstm_to_denoise: set FUSION to the flags of a model without a language model, all embeddings tied, and
# NOISED to the name of its denoiser's run folder.
transformer_to_denoise() {
    FUSION=(--arch lmfusion_tiny --share-all-embeddings) NOISED=denoiser
}

lstm_to_denoise() {
    lstm
    FUSION+=(--share-all-embeddings)
    NOISED=lstm_denoiser
}

# denoiser LANG...: sets DENOISER to a model by the flags of FUSION that learned to restore plain text of these languages from
# noise (BART's, but one sentence at a time); it is trained into $OUT/$NOISED where there is none.
# No numbers of the block above: DENOISER_UPDATES, DENOISER_LR; DENOISER, a checkpoint to be taken. A worker draws the noise, so that nothing else's random
# numbers depend on when it does.
denoiser() {
    local folder="$DATA_DIR/denoising" updates="${DENOISER_UPDATES:-$LM_UPDATES}"
    [[ -z "${DENOISER:-}" ]] || return 0
    DENOISER="$OUT/$NOISED/checkpoints/checkpoint_best.pt"
    python -P -m lmfusion.text.merged "${@/#/$DATA_DIR/lm.}" --out "$folder"
    seq2seq_shape
    bookkeeping "$LM_VALIDATE_EVERY" "$OUT/$NOISED"
    live "$OUT/$NOISED" train --label "$NOISED" --updates "$updates" --show-validation --seed "$SEED" --data "$folder" -- \
        fairseq-train "$folder" --task denoising --sample-break-mode eos --tokens-per-sample 256 \
        --mask-length span-poisson --mask 0.35 --poisson-lambda 3.5 --mask-random 0.1 --replace-length 1 --rotate 0 \
        "${FUSION[@]}" "${SHAPE[@]}" \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 "${S2S_OPTIMIZER[@]}" --clip-norm 1.0 \
        --lr "${DENOISER_LR:-$S2S_LR}" --lr-scheduler polynomial_decay --warmup-updates "$LM_WARMUP" \
        --end-learning-rate 1e-5 --total-num-update "$updates" --max-update "$updates" --max-tokens "$LM_TOKENS" \
        "${BOOKKEEPING[@]}" --num-workers 1
}

# second_stage: trains the baseline and sets START to the flags of a row that goes on from it, for as many updates again. The
# highest learning rate is SECOND_LR, no number of the block above, or a third of S2S_LR: the baseline ended near 0, and at
# all of it what it learned would be lost before the language model is of use.
second_stage() {
    train_seq2seq baseline --arch lmfusion_tiny
    START=(--finetune-from-model "$OUT/baseline/checkpoints/checkpoint_best.pt")
    S2S_LR="${SECOND_LR:-$(LC_ALL=C awk -v rate="$S2S_LR" 'BEGIN { print rate / 3 }')}"
}

# row FLAGS...: train this row's model, generate, score; its run folder is called as its script. With TRAIN_ONLY=1 the
# test set is left alone, as it has to be while settings are chosen.
row() {
    train_seq2seq "$ROW" "$@"
    [[ -z "${TRAIN_ONLY:-}" ]] || return 0
    generate "$ROW"
    score "$ROW"
}

# shallow_row LM WEIGHT...: this row's hypotheses are those of the baseline's model and the causal LM together, whose
# logarithms of probabilities are added with a weight: of those given the one with the best BLEU on the validation set,
# which $OUT/ROW.valid/scores.json keeps.
shallow_row() {
    local lm="$1" weight best reference="$DATA_DIR/text/valid.$TGT"
    shift
    train_seq2seq baseline --arch lmfusion_tiny
    [[ -z "${TRAIN_ONLY:-}" ]] || return 0
    # fairseq looks for the LM's dictionary beside the data, which other runs know without it
    local given BITEXT="$BITEXT"
    given="$(cd "$BITEXT" && pwd)" BITEXT="$BITEXT-and-lm"
    mkdir -p "$BITEXT"
    ln -sf "$given"/* "$BITEXT"
    ln -sf "$given/dict.$TGT.txt" "$BITEXT/dict.txt"
    for weight; do
        translate "$ROW.valid" "weight-$weight" valid baseline "$reference" --lm-path "$lm" --lm-weight "$weight"
        python -P -m lmfusion.runs.hypotheses "$OUT/$ROW.valid" --step "weight-$weight" --data-set "weight-$weight" \
            --reference "$reference"
    done
    best="$(python -P -c 'import json, sys
scores = json.load(open(sys.argv[1]))
print(max(sys.argv[2:], key=lambda weight: scores[f"weight-{weight}"]["bleu"]))' "$OUT/$ROW.valid/scores.json" "$@")"
    translate "$ROW" generate test baseline "$TEST_REFERENCE" --lm-path "$lm" --lm-weight "$best"
    score "$ROW"
}

# all_rows ROW...: one after the other, those too that come after a failed one; then the table.
all_rows() {
    local name status failed="" folders=()
    for name in "$@"; do
        printf '%s\n' "$name"
        status=0
        bash "$RECIPE/$name.sh" || status=$?
        ((status < 128)) || exit "$status" # interrupted
        ((status == 0)) || failed="$failed $name"
        folders+=("$OUT/$name")
    done
    python -P -m lmfusion.report.table "${folders[@]}" --save "$OUT/table.txt"
    [[ -z "$failed" ]] || die "failed:$failed. What they said is above and in $OUT/ROW/*.log; run this again to resume."
}
