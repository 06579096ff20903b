#!/usr/bin/env bash
# The paper's table and figure: every strategy at every bitext size, English-German.
#
#   bash recipes/debian_ende/study.sh [--budget cpu|cpu-long|cpu-others|gpu [NAME=VALUE ...]] [--dry-run] [--sizes N ...]
#        [--rows ROW ...] [--seeds S ...] [--jobs N] [--out DIR] [--report-only] [--add-results]
#        [--into PAGE] [--no-stored-states]
#
# Needs:    bash scripts/setup.sh; nothing is downloaded.
# Takes:    what --dry-run says: a night on two CPU cores (cpu; cpu-long: eight hours), about an hour on one
#           GPU (gpu, not measured).
# Expect:   a line for each run that ends, and the time left; at the end OUT/report/report.html.
# Run it again after an interruption: it resumes where it stopped. What is in results/ is not run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -z "${NO_SETUP:-}" && -f scripts/setup.sh ]]; then
    bash scripts/setup.sh >/dev/null
    PATH="$PWD/.venv/bin:$PATH"
fi
export NO_SETUP=1 PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}"
exec python -m study debian_ende "$@"
