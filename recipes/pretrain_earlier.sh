#!/usr/bin/env bash
# Source language models to be compared with the cloze LM, those of the years before the transformer and a causal transformer, on
# the embedded corpus: its text, BPE, and about its parameters and updates. Word vectors have the translation model's
# width, and take minutes.
#
#   bash recipes/pretrain_earlier.sh elmo|recurrent|causal|skipgram|cbow [FOLDER]       (default: runs/earlier)
#   bash recipes/pretrain_earlier.sh elmo|recurrent|causal|skipgram|cbow --file         prints the name of the file in FOLDER
#
# Writes FOLDER/en-elmo.pt, en-recurrent.pt, en-causal.pt, en-skipgram.vec or en-cbow.vec; rows take them by EARLIER=FOLDER.
# Needs:    bash scripts/setup.sh, for word vectors gensim (pip install 'lmfusion[static]'); nothing is downloaded.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

KIND="${1:-}" OUT="${2:-runs/earlier}"
CORPUS="${CORPUS:-data-prep/debian/en-de}"
case "$KIND" in
elmo) FILE=en-elmo.pt FLAGS=(--future-target --past-target --arch bi_recurrent_lm) DIM=320 LAYERS=2 ;;
recurrent) FILE=en-recurrent.pt FLAGS=(--arch uni_recurrent_lm) DIM=432 LAYERS=2 ;;
causal) FILE=en-causal.pt FLAGS=(--arch uni_transformer_lm) DIM=256 LAYERS=5 ;;
skipgram | cbow) FILE="en-$KIND.vec" DIM=192 LAYERS=0 ;;
*) echo "error: give elmo, recurrent, causal, skipgram or cbow, e.g. bash recipes/pretrain_earlier.sh elmo" >&2 && exit 2 ;;
esac
if [[ "$OUT" == --file ]]; then
    printf '%s\n' "$FILE"
    exit 0
fi

# THE NUMBERS where they are not those of recipes/_common.sh. Set any in the environment to override it.
: "${LM_UPDATES:=12000}" "${LM_WARMUP:=500}" "${LM_VALIDATE_EVERY:=500}" # the shipped cloze LM's
: "${EARLIER_DIM:=$DIM}" "${EARLIER_LAYERS:=$LAYERS}" "${EARLIER_CELL:=lstm}"
: "${EARLIER_EPOCHS:=10}"        # of word vectors

. recipes/_common.sh
SHIPPED=pretrained
[[ ! -f "$OUT/$FILE" ]] || { echo "$OUT/$FILE is there already; delete it to train it again." && exit 0; }
[[ -f "$SHIPPED/spm.model" ]] || die "$SHIPPED/spm.model: no such file. Check the repository out again."

begin
prepare "$CORPUS" --spm "$SHIPPED/spm.model" --dict "$SHIPPED/dict.txt" --lm-langs en
if [[ "$FILE" == *.vec ]]; then
    python -P -m lmfusion.cli embed --corpus "$DATA_DIR/bpe/mono.train.en" --out "$OUT/$FILE.partial" --mode "$KIND" \
        --size "$EARLIER_DIM" --epochs "$EARLIER_EPOCHS" --seed "$SEED"
    mv "$OUT/$FILE.partial" "$OUT/$FILE"
else
    # shellcheck disable=SC2034  # train_lm takes them
    if [[ "$KIND" == causal ]]; then
        LM_DIM="$EARLIER_DIM" LM_FFN=$((4 * EARLIER_DIM)) LM_LAYERS="$EARLIER_LAYERS"
    else
        LM_SHAPE=(--cell "$EARLIER_CELL" --decoder-embed-dim "$EARLIER_DIM" --decoder-layers "$EARLIER_LAYERS"
            --share-decoder-input-output-embed --dropout "$LM_DROPOUT")
    fi
    train_lm "$KIND.en" en "${FLAGS[@]}"
    save_lm "$KIND.en" "$FILE"
fi
