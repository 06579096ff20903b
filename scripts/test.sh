#!/usr/bin/env bash
# Sets up .venv where needed, then checks style and types and runs the tests, a file on each core at a time.
#
#   bash scripts/test.sh                        everything but the slow tests
#   bash scripts/test.sh --slow                 the slow tests as well
#   bash scripts/test.sh tests/unit -k bleu     anything else is passed on to pytest; -n 0: one after the other
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pytest_args=()
for argument in "$@"; do
    if [[ "$argument" == --slow ]]; then
        pytest_args+=(-m "slow or not slow")
    else
        pytest_args+=("$argument")
    fi
done

bash scripts/setup.sh

lint_failed=0
bash scripts/lint.sh || lint_failed=1

echo "test: pytest"
tests_failed=0
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # as many processes as cores compute at a time
.venv/bin/python -m pytest -n "$(getconf _NPROCESSORS_ONLN)" --dist loadfile --no-loadscope-reorder ${pytest_args[@]+"${pytest_args[@]}"} || tests_failed=$?

if ((lint_failed)); then
    echo "test: ruff or mypy failed; their messages are above the tests' output" >&2
    exit 1
fi
exit "$tests_failed"
