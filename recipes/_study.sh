#!/usr/bin/env bash
# What study.sh of every recipe folder does: the environment, then the study. Source it with FOLDER WORD..., do not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -z "${NO_SETUP:-}" && -f scripts/setup.sh ]]; then
    bash scripts/setup.sh >/dev/null
    PATH="$PWD/.venv/bin:$PATH"
fi
export NO_SETUP=1 PYTHONPATH="$PWD/recipes${PYTHONPATH:+:$PYTHONPATH}"
exec python -P -m study "$@"
