#!/usr/bin/env bash
# What the recipes share: settings, and one function for each thing a recipe does. Source it, do not run it.
#
#   OUT=runs/mine SEED=2 S2S_UPDATES=3000
#   . recipes/_common.sh
#   begin                      # environment, device
#   prepare data-prep/debian/en-de
#   train_lm lm.en en --self-target --arch bi_transformer_lm
#   train_seq2seq baseline --arch lmfusion_tiny
#   generate baseline && score baseline
#
# Every command runs in a run folder $OUT/NAME (run.json, logs, checkpoints, scores.json): finished ones are skipped,
# killed ones resume, none is overwritten by other settings.
set -euo pipefail

# ======================================================================================================================
# THE NUMBERS: sized for the embedded corpus on two CPU cores. Set any of them in the environment to override it.
# ======================================================================================================================
: "${SEED:=1}"
: "${SRC:=en}" "${TGT:=de}"

# data
: "${BITEXT_LINES:=2500}"        # first N pairs of the training bitext
: "${BPE_SIZE:=4000}"            # symbols, where a BPE is learned
: "${MAX_RATIO:=3}"              # training pairs with a greater length ratio are dropped; 0 keeps all

# language models
: "${LM_DIM:=192}" "${LM_FFN:=768}" "${LM_LAYERS:=4}" "${LM_HEADS:=4}"
: "${LM_DROPOUT:=0.1}" "${LM_ATTENTION_DROPOUT:=0.1}"
: "${LM_LR:=0.002}" "${LM_WARMUP:=100}"
: "${LM_TOKENS:=2048}"           # tokens a batch
: "${LM_UPDATES:=300}"           # the learning rate falls linearly until then
: "${LM_VALIDATE_EVERY:=100}"    # updates; as often a checkpoint is written

# sequence-to-sequence models: all share these
: "${S2S_DIM:=192}" "${S2S_FFN:=768}" "${S2S_LAYERS:=3}" "${S2S_HEADS:=4}"
: "${S2S_DROPOUT:=0.2}" "${S2S_ATTENTION_DROPOUT:=0.1}"
: "${S2S_LR:=0.001}" "${S2S_WARMUP:=200}"
: "${S2S_TOKENS:=1500}"
: "${S2S_UPDATES:=1750}"
: "${S2S_VALIDATE_EVERY:=250}" "${S2S_PATIENCE:=2}" # stop after as many validations without a gain

# what SRC-ELMO adds
: "${ELMO_DROPOUT:=0.0}"
: "${ELMO_SCALE:=1}"             # factor on the mix, where an embedding has sqrt(channels)

# generation
: "${BEAM:=5}" "${GENERATE_SENTENCES:=64}"
# ======================================================================================================================

# What a recipe may set after sourcing this: further flags of training and generation, of generation only, the score.
TASK_FLAGS=() GENERATE_FLAGS=() METRIC=bleu
# And instead of a transformer's: flags for the size of a language model, of a translation model, and the optimizer.
LM_SHAPE=() S2S_SHAPE=() S2S_OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-8)

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
[[ -f "$ROOT/scripts/setup.sh" ]] || export NO_SETUP=1 # not a clone: the recipes of an installed package
. "$ROOT/recipes/_language_models.sh"

# die MESSAGE: one line that says what happened and what to do, then exit status 2.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# numbers [FILE...]: every number of the block above, and of such blocks in further files, as NAME=VALUE
numbers() {
    local name
    grep -h '^: ' "$ROOT/recipes/_common.sh" "$@" | grep -o '[A-Z][A-Z0-9_]*:=' | tr -d ':=' | awk '!seen[$0]++' |
        while read -r name; do
            printf '%s=%s\n' "$name" "${!name}"
        done
}

# has_fast_bf16: whether bf16 is the faster one on this processor: AMX, or AMD's AVX-512. Intel's AVX-512 without AMX is
# slower with it than in single precision (measured: 0.6 times).
has_fast_bf16() {
    grep -qs 'amx_bf16' /proc/cpuinfo || { grep -qs 'avx512_bf16' /proc/cpuinfo && grep -qs 'AuthenticAMD' /proc/cpuinfo; }
}

# begin: the virtual environment, and what this machine computes on. Sets DEVICE_FLAGS, TRAIN_FLAGS, GPU, USER_DIR,
# TEXT_FLAGS, and DATA_DIR (prepared data), which several OUT may share.
begin() {
    export PYTHONUTF8=1 # texts and what is printed of them are UTF-8, whatever the locale
    [[ -n "${OUT:-}" ]] || die "OUT is not set: the folder all runs of a recipe go to"
    DATA_DIR="${DATA_DIR:-$OUT/data}"
    if [[ -z "${NO_SETUP:-}" && -d "$ROOT/.venv" ]]; then
        PATH="$ROOT/.venv/bin:$PATH"
    fi
    mkdir -p "$OUT"
    local found
    found="$(python -P -c 'import lmfusion, torch; print("device", int(torch.cuda.is_available()), lmfusion.USER_DIR)' 2>"$OUT/begin.log")" ||
        die "lmfusion cannot be imported ($(tail -n 1 "$OUT/begin.log")). Run: bash scripts/setup.sh, or activate the environment that has it"
    read -r _ GPU USER_DIR <<<"$(grep '^device ' <<<"$found")"
    rm -f "$OUT/begin.log"
    DEVICE_FLAGS=(--cpu) TRAIN_FLAGS=(--cpu)
    if [[ "$GPU" == 1 ]]; then
        DEVICE_FLAGS=(--fp16 --distributed-world-size 1) # on several GPUs fairseq would multiply the batch by their number
        TRAIN_FLAGS=("${DEVICE_FLAGS[@]}")
    elif has_fast_bf16; then
        TRAIN_FLAGS+=(--cpu-bf16)
    fi
    local flags="$USER_DIR/text/tokenizer.flags"
    # shellcheck disable=SC2207  # words are what is wanted
    TEXT_FLAGS=($(sed 's/#.*//' "$flags"))
}

# live FOLDER STEP FLAGS... -- COMMAND...: run one fairseq command of a run folder, see lmfusion/runs/live.py.
# LIVE_EXEC=exec in a subshell in the background makes it a child of this script, with which it then ends.
live() {
    LMFUSION_STARTED_BY="${BASHPID:-}" ${LIVE_EXEC:-} python -P -m lmfusion.runs.live "$@"
}

# prepare CORPUS [FLAGS...]: text to ids, into $DATA_DIR; a given BPE by --spm and --dict, else one is learned.
# Sets BITEXT, the folder of the binarized bitext.
prepare() {
    local corpus="$1"
    shift
    local bpe=(--bpe-size "$BPE_SIZE")
    if [[ " $* " == *" --spm "* ]]; then
        bpe=()
    fi
    python "$ROOT/data-prep/prepare.py" "$corpus" -s "$SRC" -t "$TGT" --out "$DATA_DIR" --seed "$SEED" \
        --bitext-lines "$BITEXT_LINES" --max-ratio "$MAX_RATIO" ${bpe[@]+"${bpe[@]}"} "$@"
    use_prepared
}

# use_prepared: the folders `prepare` filled, without preparing. Sets BITEXT, TEST_SOURCE, TEST_REFERENCE.
use_prepared() {
    BITEXT="$DATA_DIR/bitext-$BITEXT_LINES"
    # shellcheck disable=SC2034  # recipes use it
    TEST_SOURCE="$DATA_DIR/text/test.$SRC"
    TEST_REFERENCE="$DATA_DIR/text/test.$TGT"
}

# How every training run logs, validates and saves: flags EVERY FOLDER
bookkeeping() {
    local every="$1" folder="$2"
    BOOKKEEPING=(--save-dir "$folder/checkpoints" --log-format json --log-interval 10 --seed "$SEED"
        --save-interval-updates "$every" --validate-interval-updates "$every" --keep-interval-updates 1
        --save-interval 1000000 --validate-interval 1000000 --no-epoch-checkpoints --num-workers 0
        --user-dir "$USER_DIR" ${TRAIN_FLAGS[@]+"${TRAIN_FLAGS[@]}"})
}

# bpe_files: sets BPE_FILES to the flags that name the file of the BPE; --bpe lmfusion in TEXT_FLAGS brings its own.
bpe_files() {
    BPE_FILES=(--sentencepiece-model "$DATA_DIR/spm.model")
    [[ " ${TEXT_FLAGS[*]} " != *" --bpe lmfusion "* ]] || BPE_FILES=()
}

# seq2seq_shape: sets SHAPE to the flags of a translation model's size.
seq2seq_shape() {
    SHAPE=(--encoder-embed-dim "$S2S_DIM" --encoder-ffn-embed-dim "$S2S_FFN"
        --encoder-layers "$S2S_LAYERS" --encoder-attention-heads "$S2S_HEADS" --decoder-embed-dim "$S2S_DIM"
        --decoder-ffn-embed-dim "$S2S_FFN" --decoder-layers "$S2S_LAYERS" --decoder-attention-heads "$S2S_HEADS"
        --encoder-normalize-before --decoder-normalize-before
        --dropout "$S2S_DROPOUT" --attention-dropout "$S2S_ATTENTION_DROPOUT")
    ((${#S2S_SHAPE[@]} == 0)) || SHAPE=("${S2S_SHAPE[@]}")
}

# train_seq2seq NAME FLAGS...: one translation model on $BITEXT. FLAGS choose it:
#   baseline:       --arch lmfusion_tiny
#   SRC-ELMO+SHDEMB: "${SRC_ELMO_SHDEMB[@]}" after src_elmo_shdemb LM
train_seq2seq() {
    local name="$1"
    shift
    seq2seq_shape
    bookkeeping "$S2S_VALIDATE_EVERY" "$OUT/$name"
    bpe_files
    live "$OUT/$name" train --label "$name" --updates "$S2S_UPDATES" --seed "$SEED" --data "$BITEXT" -- \
        fairseq-train "$BITEXT" -s "$SRC" -t "$TGT" --task translation \
        "${SHAPE[@]}" --criterion "${TRAIN_CRITERION:-label_smoothed_cross_entropy}" --label-smoothing 0.1 \
        "${S2S_OPTIMIZER[@]}" --clip-norm 1.0 \
        --lr "$S2S_LR" --lr-scheduler polynomial_decay --warmup-updates "$S2S_WARMUP" --end-learning-rate 1e-5 \
        --total-num-update "$S2S_UPDATES" --max-update "$S2S_UPDATES" --patience "$S2S_PATIENCE" \
        --max-tokens "$S2S_TOKENS" \
        "${TEXT_FLAGS[@]}" ${BPE_FILES[@]+"${BPE_FILES[@]}"} "${BOOKKEEPING[@]}" \
        ${TASK_FLAGS[@]+"${TASK_FLAGS[@]}"} "$@"
}

# elmo SIDE LM: sets FUSION to the flags of a model whose SIDE (src, tgt) reads a mix of the frozen LM's layers.
elmo() {
    FUSION=(--arch "$1_elmo_tiny" --"$1"-lm "$2" --"$1"-elmo-dropout "$ELMO_DROPOUT" --"$1"-elmo-affine
        --"$1"-embed-scale "$ELMO_SCALE")
    [[ "$1" != src ]] || lm_cache
}

# lm_cache: adds to FUSION the folder for what the source LM says of the training sentences, if SRC_LM_CACHE names one.
lm_cache() {
    [[ -z "${SRC_LM_CACHE:-}" ]] || FUSION+=(--src-lm-cache "$SRC_LM_CACHE" --src-lm-cache-half)
}

# src_elmo_shdemb LM: sets SRC_ELMO_SHDEMB to the flags of SRC-ELMO + SHDEMB with this cloze LM.
src_elmo_shdemb() {
    elmo src "$1"
    # shellcheck disable=SC2034  # recipes use it
    SRC_ELMO_SHDEMB=("${FUSION[@]}" --share-decoder-input-output-embed)
}

# generate NAME: translate the test set with the best checkpoint, into $OUT/NAME/generate.log
generate() { translate "$1" generate test "$1" "$TEST_REFERENCE"; }

# translate NAME STEP SET MODEL REFERENCE FLAGS...: translate a SET (test, valid) with the best checkpoint of another run
# folder, MODEL, into $OUT/NAME/STEP.log; REFERENCE is a file with as many lines.
translate() {
    local name="$1" step="$2" set="$3" model="$4" reference="$5"
    shift 5
    bpe_files
    live "$OUT/$name" "$step" --label "$name" --sentences "$(wc -l <"$reference")" --data "$BITEXT" -- \
        fairseq-generate "$BITEXT" -s "$SRC" -t "$TGT" --path "$OUT/$model/checkpoints/checkpoint_best.pt" \
        --gen-subset "$set" --beam "$BEAM" --batch-size "$GENERATE_SENTENCES" --num-workers 0 \
        "${TEXT_FLAGS[@]}" ${BPE_FILES[@]+"${BPE_FILES[@]}"} \
        --user-dir "$USER_DIR" "${DEVICE_FLAGS[@]}" \
        ${TASK_FLAGS[@]+"${TASK_FLAGS[@]}"} ${GENERATE_FLAGS[@]+"${GENERATE_FLAGS[@]}"} "$@"
}

# score NAME...: detokenized hypotheses and their score into $OUT/NAME/{test.hyp,scores.json}
score() {
    local name folders=() metric=()
    if [[ "$METRIC" != bleu ]]; then
        metric=(--metric "$METRIC")
    fi
    for name in "$@"; do
        folders+=("$OUT/$name")
    done
    python -P -m lmfusion.runs.hypotheses "${folders[@]}" --source "$TEST_SOURCE" --reference "$TEST_REFERENCE" \
        --target-lang "$TGT" ${metric[@]+"${metric[@]}"}
}
