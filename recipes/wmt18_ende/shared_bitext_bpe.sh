#!/usr/bin/env bash
# SHARED with a BPE learned on the bitext, English-German.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
# Launch:  bash recipes/wmt18_ende/shared_bitext_bpe.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/shared_bitext_bpe.sh --bitext 5186K
# Takes:   2.4 hours for 10,000 updates (160K) to 7.2 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          28 GB of disk (13 checkpoints).
# Expect:  shared_bitext_bpe: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            25.2/19.0  29.9/22.3  33.6/24.8  36.2/26.6  38.6/28.2  40.6/29.6
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_bpe
plain
row "${MODEL[@]}" --share-all-embeddings
