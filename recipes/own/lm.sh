#!/usr/bin/env bash
# A cloze language model of the source language's plain text.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_lm "lm.${TEXT_LANG:-$SRC}" "${TEXT_LANG:-$SRC}" --self-target --arch bi_transformer_lm
