#!/usr/bin/env bash
# Lead-3, CNN-DailyMail: an article's first three sentences; nothing is trained.
#
# Needs:   bash data-prep/cnn_dm.sh --out data
# Launch:  bash recipes/cnn_dm/lead3.sh   (no GPU)
# Takes:   a minute, 50 MB of disk.
# Expect:  lead3, cnn_dm: 11,490 sentences
# Paper:   ROUGE-1/2/L 40.34/17.70/36.57.
set -euo pipefail
UNTRAINED=1
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lead_row 3
