#!/usr/bin/env bash
# Optimizers on one fused model: SRC-ELMO + SHDEMB, English-German, with the shipped cloze LM. One table and one figure.
#
#   bash recipes/optimizers/study.sh
#   OPTIMIZERS="adam rmsprop" FACTORS=1 S2S_UPDATES=200 OUT=runs/mine bash recipes/optimizers/study.sh
#
# Each optimizer is trained at its learning rate (RATE_ADAM and so on) times each of FACTORS; the lowest validation loss
# chooses. All else is the same: text, seed, batches, warm-up, and a rate that falls linearly to the end.
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    0.3 s an update on one core of a CPU with bf16 units: with these numbers about three hours.
# Expect:   a line for each training, then the table, also in OUT/report.md beside OUT/optimizers.svg.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUT="${OUT:-runs/optimizers}"

# THE NUMBERS where they are not those of recipes/_common.sh and debian_ende/_corpus.sh
export BITEXT_LINES="${BITEXT_LINES:-2500}" S2S_UPDATES="${S2S_UPDATES:-1500}" S2S_PATIENCE="${S2S_PATIENCE:--1}"
: "${OPTIMIZERS:=sgd momentum nag adagrad adadelta rmsprop adam adamaxw}"
: "${FACTORS:=0.3 1 3}"
: "${RATE_SGD:=0.5}" "${RATE_MOMENTUM:=0.05}" "${RATE_NAG:=0.05}" "${RATE_ADAGRAD:=0.02}" "${RATE_ADADELTA:=1}"
: "${RATE_RMSPROP:=0.0005}" "${RATE_ADAM:=0.001}" "${RATE_ADAMAXW:=0.002}"

. recipes/debian_ende/_corpus.sh

# optimizer_flags NAME: sets S2S_OPTIMIZER to its flags
optimizer_flags() {
    case "$1" in
    sgd) S2S_OPTIMIZER=(--optimizer sgd --momentum 0) ;;
    momentum) S2S_OPTIMIZER=(--optimizer sgd --momentum 0.9) ;;
    nag) S2S_OPTIMIZER=(--optimizer nag --momentum 0.9) ;;
    adagrad | adadelta) S2S_OPTIMIZER=(--optimizer "$1") ;;
    rmsprop) S2S_OPTIMIZER=(--optimizer rmsprop --rmsprop-alpha 0.98) ;;
    adam) S2S_OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)') ;;
    adamaxw) S2S_OPTIMIZER=(--optimizer adamax --adamax-betas '(0.9, 0.98)' --weight-decay 0.01) ;;
    *) die "OPTIMIZERS: $1 is none of sgd momentum nag adagrad adadelta rmsprop adam adamaxw." ;;
    esac
}

src_elmo_shdemb "$SRC_LM"
read -ra NAMES <<<"$OPTIMIZERS"
read -ra TRIED <<<"$FACTORS"
failed=""
for name in "${NAMES[@]}"; do
    optimizer_flags "$name"
    rate="RATE_$(tr '[:lower:]' '[:upper:]' <<<"$name")"
    for factor in "${TRIED[@]}"; do
        S2S_LR="$(awk -v r="${!rate}" -v f="$factor" 'BEGIN { printf "%g", r * f }')"
        train_seq2seq "$name-$S2S_LR" "${SRC_ELMO_SHDEMB[@]}" || failed="$failed $name-$S2S_LR"
    done
done
PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}" python recipes/optimizers/figure.py "$OUT" --optimizers "${NAMES[@]}"
[[ -z "$failed" ]] || die "failed:$failed. What they said is above and in $OUT/NAME/train.log; run this again to resume."
