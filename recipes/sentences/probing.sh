#!/usr/bin/env bash
# What language models of each family know of three tasks: heads on frozen models, one table over three seeds.
#
#   bash recipes/sentences/probing.sh
#   LM_UPDATES=12000 LM_DIM=192 LM_FFN=768 LM_LAYERS=4 OUT=runs/mine bash recipes/sentences/probing.sh
#
#   FURTHER="elmo-8000=runs/earlier/en-elmo.pt" bash recipes/sentences/probing.sh        NAME=FILE: models of one's own
#
# All others are trained here, of the same BPE, width and updates, but "cloze-shipped" (pretrained/en-cloze.pt: 12,000
# updates) and the word vectors, which take passes over the text.
# Needs:    bash scripts/setup.sh, for word vectors gensim (pip install 'lmfusion[static]'); nothing is downloaded.
# Expect:   the name of each training, then the table, also in OUT/probing/; PAGE=RESULTS.md renews it there.
# Run it again after an interruption: finished trainings are skipped, a killed one resumes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

sentences_begin "$@"
prepare "$CORPUS" --spm "$SPM" --dict "$DICT" --lm-langs en
read -ra EACH <<<"$SEEDS"
read -ra OWN <<<"${FURTHER:-}"
for model in ${OWN[@]+"${OWN[@]}"}; do
    [[ "$model" == ?*=* && -f "${model#*=}" ]] || die "FURTHER: $model is no NAME=FILE of a language model that is there."
done

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
train_lm elmo en --future-target --past-target --arch bi_recurrent_lm
for mode in skipgram cbow; do
    [[ -f "$OUT/$mode.vec" ]] || python -P -m lmfusion.cli embed --corpus "$DATA_DIR/bpe/mono.train.en" \
        --out "$OUT/$mode.vec" --mode "$mode" --size "$LM_DIM" --epochs "${VECTOR_EPOCHS:-1}" --seed "$SEED"
done

for seed in "${EACH[@]}"; do
    frozen probe-cloze "$(best cloze)" "$seed"
    frozen probe-causal "$(best causal)" "$seed"
    frozen probe-bert "$(best bert)" "$seed"
    frozen probe-recurrent "$(best recurrent)" "$seed"
    frozen probe-elmo "$(best elmo)" "$seed"
    frozen probe-skipgram "$OUT/skipgram.vec" "$seed"
    frozen probe-cbow "$OUT/cbow.vec" "$seed"
    frozen probe-cloze-shipped "$(shipped en-cloze.pt)" "$seed"
    for model in ${OWN[@]+"${OWN[@]}"}; do
        frozen "probe-${model%%=*}" "${model#*=}" "$seed"
    done
done
OWN=(${OWN[@]+"${OWN[@]%%=*}"})
table probing probe-{cloze,causal,bert,recurrent,elmo,skipgram,cbow,cloze-shipped} ${OWN[@]+"${OWN[@]/#/probe-}"}
