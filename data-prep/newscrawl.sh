#!/usr/bin/env bash
# newscrawl 2007-2017 of English or German: downloaded, filtered, each sentence once, Moses tokens.
#
#   bash data-prep/newscrawl.sh --lang en [--lang de] --out DATA [--scale full|tiny] [--dry-run] [...]
#
# Needs hours; 70 GB for English, 100 GB for German (--dry-run tells).
# Run the same command again after an interruption: it resumes where it stopped. All options: --help; see
# data-prep/README.md. NO_SETUP=1 takes the active Python environment instead of .venv.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [[ -z "${NO_SETUP:-}" && -f "$ROOT/scripts/setup.sh" ]]; then
    bash "$ROOT/scripts/setup.sh" >/dev/null
    PATH="$ROOT/.venv/bin:$PATH"
fi
exec python "$ROOT/data-prep/paper_corpus.py" newscrawl "$@"
