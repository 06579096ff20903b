#!/usr/bin/env bash
# The second pair, English-French, with the settings that were chosen on English-German.
#
#   bash recipes/debian_enfr/study.sh [--budget cpu|cpu-long|cpu-others|protocol|gpu [NAME=VALUE ...]] [--dry-run] [--sizes N ...]
#        [--rows ROW ...] [--seeds S ...] [--cores N] [--out DIR] [--report-only] [--add-results]
#        [--into PAGE] [--no-stored-states] [-- SNAKEMAKE'S ...]
#
# Needs:    runs/en-fr and runs/en-fr-lm (README.md says how), and Snakemake: pip install -c constraints.txt '.[study]'.
# Takes:    seven hours on two CPU cores (protocol); see docs/study.md.
# Expect:   Snakemake's lines for each job; at the end OUT/report/report.html.
# Run it again after an interruption: it resumes where it stopped. What is in results/ is not run again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../_study.sh" debian_enfr "$@"
