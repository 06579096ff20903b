#!/usr/bin/env bash
# What the folders with a script per row of the paper's table share. Source it, do not run it.
#
# A folder's _corpus.sh sets its numbers, sources _common.sh and this, calls rows_begin, prepares its corpus, and gives
#   SRC_LM       a cloze LM of the source side
#   target_lm    a function that sets TGT_LM, a causal LM of the target side, after pretraining it where there is none
# A row then is a line or two: what it adds to the baseline.
set -euo pipefail
. "$ROOT/recipes/_stages.sh"

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

# finetune SIDE LM: sets FUSION to the flags of a model whose SIDE (src, tgt) reads the LM's top state and trains it.
finetune() {
    # shellcheck disable=SC2034  # rows use it
    FUSION=(--arch "$1_ft_tiny" --"$1"-lm "$2" --"$1"-embed-scale "$FT_SCALE"
        --"$1"-representation-dropout "$FT_DROPOUT")
}

# earlier_lm KIND: sets SRC_LM to a language model of the years before (see pretrain_earlier.sh), which is trained where
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
    TRAIN_FLAGS=("${DEVICE_FLAGS[@]}") # without --cpu-bf16, which is for transformers
    FUSION=(--arch lstm_lmfusion)
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
        python -m lmfusion.runs.hypotheses "$OUT/$ROW.valid" --step "weight-$weight" --data-set "weight-$weight" \
            --reference "$reference"
    done
    best="$(python -c 'import json, sys
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
    python -m lmfusion.report.table "${folders[@]}" --save "$OUT/table.txt"
    [[ -z "$failed" ]] || die "failed:$failed. What they said is above and in $OUT/ROW/*.log; run this again to resume."
}
