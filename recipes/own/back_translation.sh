#!/usr/bin/env bash
# The baseline with back-translation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_back_translation
row --arch lmfusion_tiny
