#!/usr/bin/env bash
# English-French translation on a corpus that has to be built first: what all rows have in common. Source it, do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

OUT="${OUT:-runs/debian_enfr}"
CORPUS="${CORPUS:-runs/en-fr}"
PRETRAINED="${PRETRAINED:-runs/en-fr-lm}"

# THE NUMBERS of this corpus; all others are in recipes/_common.sh. Set any in the environment to override it.
: "${TGT:=fr}"
: "${BITEXT_LINES:=10000}"
: "${S2S_UPDATES:=3000}"

. recipes/_common.sh
[[ -d "$CORPUS" ]] || die "$CORPUS: no such folder. Build the corpus: python data-prep/debian/build.py --lang fr --out $CORPUS"
[[ -f "$PRETRAINED/en-cloze.pt" ]] ||
    die "$PRETRAINED/en-cloze.pt: no such file. Pretrain it: bash recipes/debian_enfr/pretrain.sh"
. recipes/_rows.sh
rows_begin recipes/debian_enfr "$@"

# shellcheck disable=SC2034  # rows use it
SRC_LM="$(shipped en-cloze.pt)"
prepare_pairs
