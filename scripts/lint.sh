#!/usr/bin/env bash
# Checks style (ruff), types (mypy; settings of both in pyproject.toml) and shell scripts (shellcheck).
#
#   bash scripts/lint.sh [--fix]        --fix lets ruff fix what it can
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -x .venv/bin/ruff || ! -x .venv/bin/mypy || ! -x .venv/bin/shellcheck ]]; then
    bash scripts/setup.sh
fi

failed=0
echo "lint: ruff"
.venv/bin/ruff check "$@" . || failed=1
.venv/bin/ruff format --check --quiet . || failed=1
echo "lint: mypy"
.venv/bin/mypy || failed=1
echo "lint: shellcheck"
# A row is a line or two between what its folder's _corpus.sh sources. SC2030, SC2031: the direction is turned in a subshell.
.venv/bin/shellcheck -x -P SCRIPTDIR -e SC2030,SC2031 .ci/run scripts/*.sh recipes/*.sh recipes/slurm.sbatch recipes/*/_*.sh || failed=1
exit "$failed"
