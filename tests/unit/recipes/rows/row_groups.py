"""The rows by what they have in common: their flags, or the row that they are but for one thing."""

from __future__ import annotations

FOLDERS = ["debian_ende", "debian_synopsis"]
CLOZE, CAUSAL = "pretrained/en-cloze.pt", "pretrained/de-causal.pt"
NUMBERS = {"ELMO_DROPOUT": "0.1", "ELMO_SCALE": "1.5", "FT_SCALE": "0.5", "FT_DROPOUT": "0.3"}
FROZEN = "--{0}-elmo-dropout 0.1 --{0}-elmo-affine --{0}-embed-scale 1.5"
ROWS = {
    "baseline": "--arch lmfusion_tiny",
    "shared": "--arch lmfusion_tiny --share-all-embeddings",
    "src_elmo": "--arch src_elmo_tiny --src-lm CLOZE " + FROZEN.format("src"),
    "src_elmo_shdemb": f"--arch src_elmo_tiny --src-lm CLOZE {FROZEN.format('src')} --share-decoder-input-output-embed",
    "src_ft": "--arch src_ft_tiny --src-lm CLOZE --src-embed-scale 0.5 --src-representation-dropout 0.3",
    "tgt_elmo": "--arch tgt_elmo_tiny --tgt-lm CAUSAL " + FROZEN.format("tgt"),
    "tgt_ft": "--arch tgt_ft_tiny --tgt-lm CAUSAL --tgt-embed-scale 0.5 --tgt-representation-dropout 0.3",
}
"""The paper's rows."""
LSTMS = {
    "lstm": "",
    "lstm_shdemb": "--share-decoder-input-output-embed",
    "lstm_src_elmo": "--src-fusion elmo --src-lm CLOZE --src-elmo-dropout 0.1 --src-elmo-affine",
    "lstm_src_elmo_shdemb": "--src-fusion elmo --src-lm CLOZE --src-elmo-dropout 0.1 --src-elmo-affine "
    "--share-decoder-input-output-embed",
}
FAMILIES = ("bilm", "recurrent", "causal", "skipgram", "cbow")
EARLIER = (*(f"src_elmo_{kind}" for kind in FAMILIES), *(f"src_ft_{kind}" for kind in FAMILIES[:-1]), *LSTMS)
"""Rows of the years before, which are in the first folder alone, as are those with BERT."""
BERT_ROWS = ("src_elmo_bert", "src_ft_bert")
RIVALS = {
    "src_attend": "--arch lmfusion_tiny --src-fusion attend --src-lm CLOZE --src-attend-dropnet 1.0",
    "tgt_cold": "--arch lmfusion_tiny --tgt-fusion cold --tgt-lm CAUSAL",
    "tgt_deep": "--arch lmfusion_tiny --tgt-fusion deep --tgt-lm CAUSAL",
    "tgt_lm_prior": "--arch lmfusion_tiny --criterion lm_prior --prior-lm CAUSAL --prior-weight 0.5 "
    "--prior-temperature 2",
    "src_initialise": "--arch lmfusion_tiny --src-fusion initialise --src-lm CLOZE",
    "tgt_initialise": "--arch lmfusion_tiny --tgt-fusion initialise --tgt-lm CAUSAL --share-decoder-input-output-embed",
    "src_tgt_initialise": "--arch lmfusion_tiny --src-fusion initialise --src-lm CLOZE --tgt-fusion initialise "
    "--tgt-lm CAUSAL --share-decoder-input-output-embed",
}
"""Further ways to use the same language models."""
PREFIX_LMS = {"prefix_lm": "--arch prefix_lm", "prefix_lm_causal": f"--arch prefix_lm --prefix-lm {CAUSAL}"}
SECOND_STAGES = {"src_attend_second": "src_attend", "tgt_deep_second": "tgt_deep"}
"""Rows that start from the baseline, and the same ones from scratch."""
DENOISING = {
    "denoising": ("shared", [], "denoiser"),
    "lstm_denoising": ("lstm", ["--share-all-embeddings"], "lstm_denoiser"),
}
"""Rows that start from a denoiser: the row without, further ties, the denoiser's run folder."""
BACK_TRANSLATED = {
    "back_translation": "baseline",
    "shared_back_translation": "shared",
    "lstm_back_translation": "lstm",
    "back_translation_src_elmo_shdemb": "src_elmo_shdemb",
}
"""Rows that learn from back-translations, and the same ones without."""
MADE_UP = (*BACK_TRANSLATED, "self_training", "copied", "distill")
"""Rows that train on more pairs than the corpus has."""
