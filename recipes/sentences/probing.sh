#!/usr/bin/env bash
# What language models of each family know of three tasks: heads on frozen models, one table over three seeds.
#
#   bash recipes/sentences/probing.sh
#   LM_UPDATES=12000 LM_DIM=192 LM_FFN=768 LM_LAYERS=4 OUT=runs/mine bash recipes/sentences/probing.sh
#
# All models are trained here, of the same BPE, width and updates, but "cloze-shipped" (pretrained/en-cloze.pt: 12,000
# updates) and the word vectors, which take passes over the text.
# Needs:    bash scripts/setup.sh, for word vectors gensim (pip install 'lmfusion[static]'); nothing is downloaded.
# Expect:   the name of each training, then the table, also in OUT/probing/; PAGE=RESULTS.md renews it there.
# Run it again after an interruption: finished trainings are skipped, a killed one resumes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

sentences_begin "$@"
prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs en
read -ra EACH <<<"$SEEDS"

best() { printf '%s\n' "$OUT/$1/checkpoints/checkpoint_best.pt"; }

train_lm cloze en --self-target --arch bi_transformer_lm
train_lm causal en --arch uni_transformer_lm
DOCUMENTS="$DATA_DIR/documents.en"
python data-prep/documents.py --train "$CORPUS/synopsis.train.description.xz" \
    --valid "$CORPUS/synopsis.valid.description.xz" --lang en --spm "$SPM" --dict "$DICT" --out "$DOCUMENTS" --one-a-line
train_bert bert "$DOCUMENTS"
# shellcheck disable=SC2034  # train_lm takes it
LM_SHAPE=(--cell lstm --decoder-embed-dim "$LM_DIM" --decoder-layers "$LM_LAYERS" --share-decoder-input-output-embed
    --dropout "$LM_DROPOUT")
train_lm recurrent en --arch uni_recurrent_lm
VECTORS="$OUT/skipgram.vec"
[[ -f "$VECTORS" ]] || python -m lmfusion.cli embed --corpus "$DATA_DIR/bpe/mono.train.en" --out "$VECTORS" \
    --mode skipgram --size "$LM_DIM" --epochs "${VECTOR_EPOCHS:-1}" --seed "$SEED"

for seed in "${EACH[@]}"; do
    frozen probe-cloze "$(best cloze)" "$seed"
    frozen probe-causal "$(best causal)" "$seed"
    frozen probe-bert "$(best bert)" "$seed"
    frozen probe-recurrent "$(best recurrent)" "$seed"
    frozen probe-static "$VECTORS" "$seed"
    frozen probe-cloze-shipped "$(shipped en-cloze.pt)" "$seed"
done
table probing probe-cloze probe-causal probe-bert probe-recurrent probe-static probe-cloze-shipped
