#!/usr/bin/env bash
# SRC-ELMO + SHDEMB, English-German: SRC-ELMO, and one embedding for the decoder's input and output.
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
#          bash recipes/lm/en_cloze.sh   (or SRC_LM=FILE)
# Launch:  bash recipes/wmt18_ende/src_elmo_shdemb.sh --bitext 160K
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/wmt18_ende/src_elmo_shdemb.sh --bitext 5186K
# Takes:   12.7 hours for 10,000 updates (160K) to 38 for 30,000 (5186K), if 32 V100 do what the paper measured;
#          37 GB of disk (13 checkpoints).
# Expect:  src_elmo_shdemb: 10,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   BLEU on newstest2018 / average of newstest2012 to 2018, by bitext size:
#                 160K       320K       640K      1280K      2560K      5186K
#            29.0/21.8  32.3/24.2  36.2/26.9  38.6/28.8  40.0/29.8  41.8/30.9
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

source_lm
elmo_side src "$SRC_LM"
row "${MODEL[@]}" --share-decoder-input-output-embed
