"""The released code's architectures, and what they are here."""

from __future__ import annotations

CLOZE, CAUSAL, SEQ2SEQ = "bi_transformer_lm", "uni_transformer_lm", "transformer_lmfusion"
ARCHITECTURES = {
    **dict.fromkeys(["bi_transformer_lm", "bi_transformer_lm_big", "bi_transformer_lm_big_non_cloze"], CLOZE),
    **dict.fromkeys(["transformer_lm", "transformer_lm_big", "transformer_lm_wiki103", "transformer_lm_gbw"], CAUSAL),
    **dict.fromkeys(["transformer", "transformer_iwslt_de_en", "transformer_wmt_en_de"], SEQ2SEQ),
    **dict.fromkeys(["transformer_wmt_en_de_big", "transformer_wmt_en_de_big_t2t"], SEQ2SEQ),
    **dict.fromkeys(["transformer_vaswani_wmt_en_de_big", "transformer_vaswani_wmt_en_fr_big"], SEQ2SEQ),
}
# lmfusion's own, where a file in its format describes a language model.
OURS = {f"{name}{size}": name for name in (CLOZE, CAUSAL) for size in ("", "_big")}
NAMES = {CLOZE: "a cloze language model", CAUSAL: "a causal language model", SEQ2SEQ: "a sequence-to-sequence model"}
