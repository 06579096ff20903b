#!/usr/bin/env bash
# Other ways to use the same language models, one after the other, and the table of their scores ($OUT/table.txt).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

all_rows baseline src_elmo_shdemb src_attend src_attend_second tgt_cold tgt_deep tgt_deep_second tgt_shallow tgt_lm_prior \
    src_initialise tgt_initialise src_tgt_initialise prefix_lm prefix_lm_causal denoising
