#!/usr/bin/env bash
# The BPE of both languages, and the English cloze LM, of the shipped one's size and updates.
#
#   bash recipes/debian_enfr/pretrain.sh
#
# Writes runs/en-fr-lm/en-cloze.pt, spm.model and dict.txt (PRETRAINED names another folder).
# Needs:    bash scripts/setup.sh, and the corpus (CORPUS, default runs/en-fr): data-prep/debian/build.py makes it.
# Takes:    half a second an update on one CPU core with bf16 units; the number of updates is LM_UPDATES.
# Run it again after an interruption: it resumes where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${PRETRAINED:-runs/en-fr-lm}"
CORPUS="${CORPUS:-runs/en-fr}"

# THE NUMBERS where they are not those of recipes/_common.sh. Set any in the environment to override it.
: "${TGT:=fr}"
: "${LM_UPDATES:=12000}" "${LM_WARMUP:=500}" "${LM_VALIDATE_EVERY:=500}"

. recipes/_common.sh
[[ -d "$CORPUS" ]] || die "$CORPUS: no such folder. Build the corpus: python data-prep/debian/build.py --lang fr --out $CORPUS"
begin
prepare "$CORPUS" --lm-langs en
train_lm cloze.en en --self-target --arch bi_transformer_lm
cp "$DATA_DIR/spm.model" "$DATA_DIR/dict.txt" "$OUT/"
save_lm cloze.en en-cloze.pt
