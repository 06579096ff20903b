#!/usr/bin/env bash
# Lead: the description's first sentence; nothing is trained.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

live "$OUT/lead" generate --label lead --sentences "$(wc -l <"$TEST_SOURCE")" --data "$BITEXT" -- \
    python data-prep/lead.py "$TEST_SOURCE" --sentences 1
score lead
