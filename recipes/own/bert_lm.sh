#!/usr/bin/env bash
# A BERT of the source language's plain text.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_bert
