#!/usr/bin/env bash
# Checks style (ruff) and types (mypy); their settings are in pyproject.toml.
#
#   bash scripts/lint.sh [--fix]        --fix lets ruff fix what it can
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -x .venv/bin/ruff || ! -x .venv/bin/mypy ]]; then
    bash scripts/setup.sh
fi

failed=0
echo "lint: ruff"
.venv/bin/ruff check "$@" . || failed=1
.venv/bin/ruff format --check --quiet . || failed=1
echo "lint: mypy"
.venv/bin/mypy || failed=1
exit "$failed"
