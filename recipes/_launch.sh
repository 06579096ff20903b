#!/usr/bin/env bash
# How a training is started on so many GPUs, and with which --update-freq. Source it, do not run it.
#
# One machine: torchrun. Several: a SLURM job (recipes/slurm.sbatch), where srun starts one torchrun on each machine.
# fairseq takes rank and world size from torchrun's environment; the world size is given as well, because without it
# a process that sees one GPU trains on its own.
# shellcheck disable=SC2034  # what sources this uses and sets them
set -euo pipefail

# thousands N: 458752 -> 458,752
thousands() { sed -E -e ':more' -e 's/([0-9])([0-9]{3})($|,)/\1,\2\3/' -e 't more' <<<"$1"; }

gpus_here() { python -P -c 'import torch; print("gpus", torch.cuda.device_count())' | sed -n 's/^gpus //p'; }

# find_gpus: sets GPUS, in all, if it was not given (0 is one CPU process), and checks it against this machine.
find_gpus() {
    if [[ "$SCALE" == tiny && -z "$GPUS" ]]; then
        GPUS=0
        return
    fi
    local here=0
    if [[ -z "$DRY_RUN" || -z "$GPUS" ]]; then
        here="$(gpus_here)"
    fi
    if [[ -z "$GPUS" ]]; then
        GPUS=$((here * NODES))
        if ((GPUS == 0)) && [[ -n "$DRY_RUN" ]]; then
            GPUS="$PAPER_GPUS"
        fi
    fi
    ((GPUS > 0)) || die "this machine has no GPU, which the paper's sizes need. See what would be run with --dry-run --gpus 8, or run it in small with --scale tiny."
    ((GPUS % NODES == 0)) || die "--gpus $GPUS cannot be shared evenly by $NODES machines. Give a multiple of $NODES."
    [[ -z "$DRY_RUN" ]] || return 0
    ((NODES == 1)) || [[ -n "${SLURM_JOB_ID:-}" ]] || die "$NODES machines need a SLURM job: sbatch --nodes $NODES recipes/slurm.sbatch $RECIPE/$ROW.sh"
    ((GPUS <= here * NODES)) || die "--gpus $GPUS: there are $here on this machine. Leave --gpus out to use them all; for several machines: sbatch --nodes N recipes/slurm.sbatch $RECIPE/$ROW.sh"
}

# find_update_freq: sets UPDATE_FREQ so that an update sees the paper's PAPER_GPUS x PAPER_TOKENS tokens, and says so.
find_update_freq() {
    local devices=$((GPUS > 0 ? GPUS : 1)) batch=$((PAPER_GPUS * PAPER_TOKENS)) step ours permille note=""
    step=$((devices * GPU_TOKENS))
    UPDATE_FREQ=$(((batch + step / 2) / step))
    ((UPDATE_FREQ > 0)) || UPDATE_FREQ=1
    ours=$((step * UPDATE_FREQ))
    permille=$(((ours - batch) * 1000 / batch))
    if ((permille < -50 || permille > 50)); then
        die "--gpus $GPUS: the paper's batch, $PAPER_GPUS GPUs × $(thousands "$PAPER_TOKENS") tokens, cannot be kept within 5%: $devices × $(thousands "$GPU_TOKENS") tokens × --update-freq $UPDATE_FREQ are $(thousands "$ours"). Give a number of GPUs that divides $PAPER_GPUS, or other tokens per GPU: GPU_TOKENS=$((batch / devices / ((batch + step - 1) / step)))"
    fi
    if ((ours != batch)); then
        note=" = $(thousands "$ours") tokens, rounded: $(awk -v o="$ours" -v b="$batch" 'BEGIN { printf "%+.1f%%", 100 * (o - b) / b }')"
    fi
    local what="$GPUS GPUs"
    ((GPUS != 1)) || what="1 GPU"
    ((GPUS != 0)) || what="one CPU process"
    ((GPU_TOKENS == PAPER_TOKENS)) || what="$what × $(thousands "$GPU_TOKENS") tokens"
    BATCH_LINE="$PAPER_GPUS GPUs × $(thousands "$PAPER_TOKENS") tokens = $(thousands "$batch") tokens an update; with $what: --update-freq $UPDATE_FREQ$note"
    printf '%s\n' "$BATCH_LINE"
}

# launch_words: sets LAUNCH, the words in front of fairseq-train, and DISTRIBUTED, flags behind it.
launch_words() {
    LAUNCH=() DISTRIBUTED=(--distributed-world-size "$((GPUS > 0 ? GPUS : 1))")
    ((GPUS > 1)) || return 0
    LAUNCH=(torchrun --nnodes "$NODES" --nproc-per-node "$((GPUS / NODES))")
    if ((NODES == 1)); then
        LAUNCH+=(--standalone)
    else
        local first=FIRST_MACHINE job="${SLURM_JOB_ID:-0}"
        if [[ -z "$DRY_RUN" ]]; then
            first="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
        fi
        LAUNCH=(srun --nodes "$NODES" --ntasks "$NODES" --ntasks-per-node 1 --kill-on-bad-exit 1 "${LAUNCH[@]}"
            --rdzv-id "$job" --rdzv-backend c10d --rdzv-endpoint "$first:$((20000 + job % 10000))")
    fi
    LAUNCH+=(--no-python)
}
