#!/usr/bin/env bash
# The command line of the scripts that repeat the paper's experiments. Source it, do not run it.
#
#   OWN_OPTIONS="--bitext"               # options that only some folders have
#   paper_options recipes/wmt18_ende "$@"
#
# Sets RECIPE ROW DRY_RUN SCALE TRAIN_ONLY GPUS NODES DATA RUNS SEED and, where the folder has them, BITEXT, OPTIMIZER.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail

usage_error() {
    printf 'error: %s See --help.\n' "$*" >&2
    exit 2
}

# usage: the script's header, then what all have in common
usage() {
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$RECIPE/$ROW.sh"
    cat <<'END'

Options:
  --gpus N         GPUs in all (default: this machine's, or those of the SLURM job). The paper's batch is kept:
                   --update-freq makes up for fewer GPUs
  --data DIR       what data-prep/ filled (default: data; data-tiny with --scale tiny)
  --runs DIR       where language models and runs go (default: runs/paper; runs/paper-tiny with --scale tiny)
  --seed N         of the training (default: 1)
  --train-only     stop before the test sets are touched
  --scale tiny     the same in small, on one CPU core, to see that it works (data: data-prep/… --scale tiny)
  --dry-run        print every command and run none; with --nodes N, for so many machines of a SLURM cluster
  -h, --help       this text
Other numbers are set in the environment; the recipe's _corpus.sh and recipes/_paper.sh list them with their defaults.
Run the same command again after an interruption: finished steps are skipped, a killed training resumes.
END
}

# option NAME VALUE: one option that has a value
option() {
    [[ -n "${2:-}" && "${2:-}" != --* ]] || usage_error "$1 needs a value."
    case "$1" in
    --gpus) GPUS="$2" ;;
    --nodes) NODES="$2" ;;
    --data) DATA="$2" ;;
    --runs) RUNS="$2" ;;
    --seed) SEED="$2" ;;
    --scale) SCALE="$2" ;;
    --bitext) BITEXT="$2" ;;
    --optimizer) OPTIMIZER="$2" ;;
    esac
}

# paper_options FOLDER WORD...: FOLDER is the recipe's, WORD... the command line
paper_options() {
    RECIPE="$1" ROW="$(basename "$0" .sh)"
    shift
    DRY_RUN="" TRAIN_ONLY="" SCALE=paper GPUS="${GPUS:-}" NODES="${NODES:-${SLURM_JOB_NUM_NODES:-1}}"
    while (($#)); do
        case " --gpus --nodes --data --runs --seed --scale ${OWN_OPTIONS:-} " in
        *" $1 "*)
            option "$1" "${2:-}"
            shift 2
            continue
            ;;
        esac
        case "$1" in
        --dry-run) DRY_RUN=1 ;;
        --train-only) TRAIN_ONLY=1 ;;
        -h | --help) usage; exit 0 ;;
        *) usage_error "$1: $RECIPE/$ROW.sh has no such option." ;;
        esac
        shift
    done
    check_options
}

check_options() {
    # NAME is set by sweep.sh: its first word. Refused before anything is begun.
    [[ "$ROW" != sweep || -f "$RECIPE/${NAME:-}.sh" && "$NAME" != sweep && "$NAME" != all ]] ||
        usage_error "sweep.sh ${NAME:-}: name a row of $RECIPE first, such as baseline."
    [[ "$SCALE" == paper || "$SCALE" == tiny ]] || usage_error "--scale $SCALE: give paper or tiny."
    SEED="${SEED:-1}"
    [[ "$SEED" =~ ^[0-9]+$ ]] || usage_error "--seed $SEED: give a whole number."
    [[ "$GPUS" =~ ^([1-9][0-9]*)?$ ]] || usage_error "--gpus $GPUS: give a number of GPUs, 1 or more."
    [[ "$NODES" =~ ^[1-9][0-9]*$ ]] || usage_error "--nodes $NODES: give a number of machines, 1 or more."
    local suffix=""
    [[ "$SCALE" == paper ]] || suffix="-tiny"
    DATA="${DATA:-data$suffix}" RUNS="${RUNS:-runs/paper$suffix}"
}
