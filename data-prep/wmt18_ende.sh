#!/usr/bin/env bash
# WMT'18 English-German (subsets of the bitext, newstest2012-2018) and newscrawl in ids for both LMs.
#
#   bash data-prep/wmt18_ende.sh --out DATA [--scale full|tiny] [--dry-run] [...]
#
# Needs a day on 16 cores; 420 GB, newscrawl with them (--dry-run tells).
# Run the same command again after an interruption: it resumes where it stopped. All options: --help; see
# data-prep/README.md. NO_SETUP=1 takes the active Python environment instead of .venv.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [[ -z "${NO_SETUP:-}" && -f "$ROOT/scripts/setup.sh" ]]; then
    bash "$ROOT/scripts/setup.sh" >/dev/null
    PATH="$ROOT/.venv/bin:$PATH"
fi
exec python "$ROOT/data-prep/paper_corpus.py" wmt18_ende "$@"
