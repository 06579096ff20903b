#!/usr/bin/env bash
# SHARED with back-translation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

back_translated
row --arch lmfusion_tiny --share-all-embeddings
