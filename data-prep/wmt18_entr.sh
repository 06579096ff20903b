#!/usr/bin/env bash
# WMT'18 English-Turkish: SETIMES2, newstest2017 and 2018; the English side in the joint BPE of wmt18_ende.
#
#   bash data-prep/wmt18_entr.sh --out DATA [--scale full|tiny] [--dry-run] [...]
#
# Needs minutes and 1 GB after wmt18_ende.sh; it makes newscrawl and the joint BPE where they are missing (--dry-run tells).
# Run the same command again after an interruption: it resumes where it stopped. All options: --help; see
# data-prep/README.md. NO_SETUP=1 takes the active Python environment instead of .venv.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [[ -z "${NO_SETUP:-}" && -f "$ROOT/scripts/setup.sh" ]]; then
    bash "$ROOT/scripts/setup.sh" >/dev/null
    PATH="$ROOT/.venv/bin:$PATH"
fi
exec python "$ROOT/data-prep/paper_corpus.py" wmt18_entr "$@"
