#!/usr/bin/env bash
# A causal language model of the target language's plain text.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_lm "causal.${TEXT_LANG:-$TGT}" "${TEXT_LANG:-$TGT}" --arch uni_transformer_lm
