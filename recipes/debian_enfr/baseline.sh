#!/usr/bin/env bash
# Baseline: a transformer without a language model.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

row --arch lmfusion_tiny
