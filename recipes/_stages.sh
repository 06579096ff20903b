#!/usr/bin/env bash
# Stages of a recipe: each announced with the time left, skipped when it is done, timed. Source it, do not run it.
#
#   STAGE_NAMES=("Preparing" "Training")  STAGE_SECONDS=(45 600)    # what they take on the machine the numbers are for
#   stages_begin
#   stage 0 prepare_function ARGS...
#   stage 1 train_function
#
# $OUT/stages.tsv keeps number, seconds and state (done, stopped) of every attempt; $OUT/settings.txt what they were
# done with: another setting in the same folder is an error.
set -euo pipefail

STAGE_CURRENT=""
STAGE_SPENT=0
STAGE_EXPECTED=0

# same_settings SETTING...: check the settings (NAME=VALUE words) against those $OUT was begun with, or keep them.
same_settings() {
    mkdir -p "$OUT"
    local settings change
    settings="$(printf '%s\n' "$@")"
    if [[ -f "$OUT/settings.txt" ]] && ! change="$(diff "$OUT/settings.txt" - <<<"$settings")"; then
        change="$(grep '^[<>]' <<<"$change" | tr '\n' ' ')"
        die "$OUT was begun with other settings ($change; '<' then, '>' now). Choose another ${OUT_OPTION:---out}, or delete it."
    fi
    printf '%s\n' "$settings" >"$OUT/settings.txt.$$" # its own name, for several scripts may begin at once
    mv "$OUT/settings.txt.$$" "$OUT/settings.txt"
}

# stages_begin SETTING...: the same, and what `stage` needs.
stages_begin() {
    same_settings "$@"
    touch "$OUT/stages.tsv"
    trap stage_stopped EXIT
}

stage_done() { grep -q "^$1	[0-9]*	done$" "$OUT/stages.tsv"; }

# stage_seconds NUMBER: time spent on a stage, in all attempts
stage_seconds() { awk -F'\t' -v n="$1" '$1 == n { sum += $2 } END { print sum + 0 }' "$OUT/stages.tsv"; }

# Time left in all, from the table's estimates and how the stages done by this attempt compared to theirs.
stages_left() {
    local number left=0
    for number in "${!STAGE_NAMES[@]}"; do
        stage_done "$number" || left=$((left + STAGE_SECONDS[number]))
    done
    if ((STAGE_SPENT > 20 && STAGE_EXPECTED > 0)); then
        left=$((left * STAGE_SPENT / STAGE_EXPECTED))
    fi
    if ((left < 90)); then
        echo "about $left s"
    else
        echo "about $(((left + 30) / 60)) min"
    fi
}

# stage NUMBER COMMAND...: announce the stage, run the command unless it was done before, keep the time.
stage() {
    local number="$1" last=$((${#STAGE_NAMES[@]} - 1))
    shift
    if stage_done "$number"; then
        printf '[%s/%s] %s: done before\n' "$number" "$last" "${STAGE_NAMES[number]}"
        return
    fi
    printf '[%s/%s] %s (%s left in all)\n' "$number" "$last" "${STAGE_NAMES[number]}" "$(stages_left)"
    STAGE_CURRENT="$number"
    STAGE_START="$SECONDS"
    "$@"
    STAGE_CURRENT=""
    local spent=$((SECONDS - STAGE_START))
    printf '%s\t%s\tdone\n' "$number" "$spent" >>"$OUT/stages.tsv"
    STAGE_SPENT=$((STAGE_SPENT + spent))
    STAGE_EXPECTED=$((STAGE_EXPECTED + STAGE_SECONDS[number]))
}

# When a stage fails or is interrupted: keep its time, say how to resume.
stage_stopped() {
    [[ -n "$STAGE_CURRENT" ]] || return 0
    printf '%s\t%s\tstopped\n' "$STAGE_CURRENT" "$((SECONDS - STAGE_START))" >>"$OUT/stages.tsv"
    printf '\nStopped in stage %s (%s). The same command resumes there.\n' \
        "$STAGE_CURRENT" "${STAGE_NAMES[STAGE_CURRENT]}" >&2
}
