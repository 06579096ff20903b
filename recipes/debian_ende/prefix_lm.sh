#!/usr/bin/env bash
# PREFIX-LM: a decoder-only model reads source and target in one row, the source in both directions.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

prefix_lm
row "${FUSION[@]}"
