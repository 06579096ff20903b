#!/usr/bin/env bash
# SRC-FT with BERT: the encoder reads BERT's last layer, and BERT trains with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

bert_lm
finetune_bert "$BERT"
row "${FUSION[@]}"
