#!/usr/bin/env bash
# Baseline with a BPE learned on the bitext, English-German.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
# Launch:  bash recipes/wmt18_ende/baseline_bitext_bpe.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/baseline_bitext_bpe.sh --bitext 5186K
# Takes:   2.4 hours for 10,000 updates (160K) to 7.2 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          38 GB of disk (13 checkpoints).
# Expect:  baseline_bitext_bpe: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   no figure of its own; SHARED with such a BPE is 0.1 to 0.7 BLEU below SHARED on average.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_bpe
plain
row "${MODEL[@]}"
