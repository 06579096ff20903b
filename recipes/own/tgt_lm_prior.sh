#!/usr/bin/env bash
# LM-PRIOR: the baseline, trained to stay probable under the causal LM, which is not needed to translate.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

target_lm
row --arch lmfusion_tiny --criterion lm_prior --prior-lm "$TGT_LM" --prior-weight "${PRIOR_WEIGHT:-0.5}" \
    --prior-temperature "${PRIOR_TEMPERATURE:-2}"
