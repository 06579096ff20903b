#!/usr/bin/env bash
# The paper's table and figure: summarization, description to synopsis.
#
#   bash recipes/debian_synopsis/study.sh [--budget cpu|cpu-long|gpu [NAME=VALUE ...]] [--dry-run] [--sizes N ...]
#        [--rows ROW ...] [--seeds S ...] [--cores N] [--out DIR] [--report-only] [--add-results]
#        [--into PAGE] [--no-stored-states] [-- SNAKEMAKE'S ...]
#
# Needs:    bash scripts/setup.sh, and Snakemake: pip install -c constraints.txt '.[study]'; --report-only does without.
# Takes:    about four hours on two CPU cores (cpu); see docs/study.md.
# Expect:   Snakemake's lines for each job; at the end OUT/report/report.html.
# Run it again after an interruption: it resumes where it stopped. What is in results/ is not run again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../_study.sh" debian_synopsis "$@"
