#!/usr/bin/env bash
# English cloze LM for English-German and English-Turkish (SRC-ELMO, SRC-FT).
#
# Needs:   bash data-prep/wmt18_ende.sh --out data
# Launch:  bash recipes/lm/en_cloze.sh                       (the paper's Nesterov, fp16; made for 32 GPUs)
#          bash recipes/lm/en_cloze.sh --optimizer adam      (one to eight GPUs, bf16; not the paper's)
#          sbatch --nodes 4 recipes/slurm.sbatch recipes/lm/en_cloze.sh
# Takes:   six days on 32 V100, says the paper; with n GPUs of that kind 32/n times as long. 7 GB of disk for
#          checkpoints, and some 5 GB of memory for each GPU's process to index 200M sentences.
# Expect:  en_cloze: update 4,000, validation perplexity …   and so on every 4,000 updates, then
#          en_cloze: 984,000 updates, … tokens/s, validation perplexity … at the lowest loss
# Paper:   353M parameters at 37K BPE types; no perplexity is published.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

pretrain wmt18_ende en "${CLOZE[@]}"
