#!/usr/bin/env bash
# SHARED: the baseline with one embedding for encoder, decoder and output.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

row --arch lmfusion_tiny --share-all-embeddings
