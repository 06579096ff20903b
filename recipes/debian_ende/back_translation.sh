#!/usr/bin/env bash
# Back-translation: a model of the other direction translates plain text of the target language, and the baseline trains on these pairs, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

back_translated
row --arch lmfusion_tiny
