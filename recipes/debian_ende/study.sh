#!/usr/bin/env bash
# The paper's table and figure: every strategy at every bitext size, English-German.
#
#   bash recipes/debian_ende/study.sh [--budget cpu|cpu-long|cpu-others|protocol|gpu [NAME=VALUE ...]] [--dry-run] [--sizes N ...]
#        [--rows ROW ...] [--seeds S ...] [--cores N] [--out DIR] [--report-only] [--add-results]
#        [--into PAGE] [--no-stored-states] [-- SNAKEMAKE'S ...]
#
# Needs:    bash scripts/setup.sh, and Snakemake: pip install -c constraints.txt '.[study]'; --report-only does without.
# Takes:    a night on two CPU cores (cpu); days (protocol), see docs/study.md.
# Expect:   Snakemake's lines for each job; at the end OUT/report/report.html.
# Run it again after an interruption: it resumes where it stopped. What is in results/ is not run again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../_study.sh" debian_ende "$@"
