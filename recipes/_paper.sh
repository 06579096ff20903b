#!/usr/bin/env bash
# What the scripts that repeat the paper's experiments share. Source it, do not run it.
#
# A folder's _corpus.sh calls paper_options, sets its numbers, sources this, and calls paper_begin. A script then calls
# pretrain, or row with what its model adds to the baseline.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail

# THE NUMBERS that all have in common. Set any of them in the environment to override it.
if [[ "$SCALE" == tiny ]]; then
    : "${AVERAGE:=2}" "${BEAM:=2}" "${GENERATE_SENTENCES:=64}" "${S2S_WARMUP:=2}" "${NUM_WORKERS:=0}" "${LOG_EVERY:=1}"
fi
: "${AVERAGE:=10}"               # checkpoints of the lowest validation loss, which are averaged
: "${S2S_WARMUP:=4000}"          # updates
: "${NUM_WORKERS:=4}"            # processes that read the data, for each GPU
: "${LOG_EVERY:=100}"            # updates
: "${PRECISION:=fp16}"           # on GPUs: fp16, bf16, fp32

. recipes/_common.sh
. recipes/_launch.sh

# need FILE MEND: a file that has to be there; a dry run says what is missing and continues.
need() {
    [[ ! -e "$1" ]] || return 0
    [[ -n "$DRY_RUN" ]] || die "$1: no such file. $2"
    printf '# missing: %s. %s\n' "$1" "$2"
}

# shown WORD...: print a command so that it can be pasted into a shell
shown() {
    printf '%q ' "$@" | sed 's/ $//'
    printf '\n'
}

# do_or_show WORD...: run a command, or print it
do_or_show() {
    if [[ -n "$DRY_RUN" ]]; then
        shown "$@"
    else
        "$@"
    fi
}

# live FOLDER STEP FLAGS... -- COMMAND...: the same as in _common.sh, or the command printed
live() {
    local folder="$1" step="$2" launch=()
    [[ "$step" != train ]] || launch=(${LAUNCH[@]+"${LAUNCH[@]}"})
    if [[ -z "$DRY_RUN" ]]; then
        shift 2
        LMFUSION_STARTED_BY="${BASHPID:-}" python -P -m lmfusion.runs.live "$folder" "$step" --launch "${launch[*]-}" "$@"
        return
    fi
    printf '\n# %s: %s\n' "$folder" "$step"
    while [[ "$1" != -- ]]; do shift; done
    shift
    shown ${launch[@]+"${launch[@]}"} "$@"
}

# paper_begin: the environment, GPUs and the batch. UNTRAINED=1 needs no GPU.
paper_begin() {
    local wanted="$OUT" scratch=""
    [[ -n "${NO_SETUP:-}" || -n "$DRY_RUN" || ! -f "$ROOT/scripts/setup.sh" ]] || bash "$ROOT/scripts/setup.sh" >/dev/null
    if [[ -n "$DRY_RUN" ]]; then # leaves no folder behind
        scratch="$(mktemp -d)"
        OUT="$scratch"
    fi
    begin
    [[ -z "$scratch" ]] || rmdir "$scratch"
    OUT="$wanted"
    if [[ -n "${UNTRAINED:-}" ]]; then
        GPUS=0
    else
        find_gpus
        find_update_freq
    fi
    launch_words
    case "$GPUS $PRECISION" in
    "0 "*) DEVICE_FLAGS=(--cpu) TRAIN_FLAGS=(--cpu) ;;
    *" fp16") DEVICE_FLAGS=(--fp16) TRAIN_FLAGS=(--fp16) ;;
    *" bf16") DEVICE_FLAGS=() TRAIN_FLAGS=(--bf16) ;;
    *" fp32") DEVICE_FLAGS=() TRAIN_FLAGS=() ;;
    *) die "PRECISION=$PRECISION: give fp16, bf16 or fp32" ;;
    esac
}

# paper_bookkeeping EVERY FOLDER: BOOKKEEPING of a long training
paper_bookkeeping() {
    bookkeeping "$@"
    BOOKKEEPING+=(--num-workers "$NUM_WORKERS" --log-interval "$LOG_EVERY" --update-freq "$UPDATE_FREQ"
        --max-tokens "$GPU_TOKENS" "${DISTRIBUTED[@]}")
}
