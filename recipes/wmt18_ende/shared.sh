#!/usr/bin/env bash
# SHARED, English-German: one embedding for encoder, decoder and output.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
# Launch:  bash recipes/wmt18_ende/shared.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/shared.sh --bitext 5186K
# Takes:   2.4 hours for 10,000 updates (160K) to 7.2 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          28 GB of disk (13 checkpoints).
# Expect:  shared: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            24.9/19.1  30.6/22.7  34.1/25.2  37.3/27.3  38.9/28.5  40.2/29.9
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

plain
row "${MODEL[@]}" --share-all-embeddings
