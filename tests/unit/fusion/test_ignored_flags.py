"""A flag that would be ignored is an error, also when it is zero."""

from argparse import Namespace
from typing import Any

import pytest
from fairseq.tasks.language_modeling import LanguageModelingTask

from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.consumers.prefix_lm import PrefixLM
from lmfusion.errors import InputError
from lmfusion.fusion.combinations import check_combination
from lmfusion.fusion.model import TransformerLMFusion


@pytest.mark.parametrize("name", ["src_lm_dropout", "src_lm_attention_dropout", "src_lm_relu_dropout"])
def test_zero_is_a_value_too(make_cell: Any, name: str) -> None:
    """--src-lm-dropout 0 with elmo."""
    with pytest.raises(InputError, match="would be ignored"):
        check_combination(make_cell("elmo", "none", **{name: 0.0}))


@pytest.mark.parametrize("cell", [("elmo", "none"), ("none", "elmo")])
def test_merged_embeddings_beside_a_language_model(make_cell: Any, task: Any, cell: tuple[str, str]) -> None:
    """--merge-src-tgt-embed is SHARED with two dictionaries made one."""
    with pytest.raises(InputError, match="--merge-src-tgt-embed"):
        TransformerLMFusion.build_model(make_cell(*cell, merge_src_tgt_embed=True), task)


@pytest.mark.parametrize("fusion", ["none", "elmo", "finetune"])
def test_an_adaptive_softmax_cannot_be_tied_to_plain_embeddings(make_cell: Any, fusion: str) -> None:
    with pytest.raises(InputError, match="--tie-adaptive-weights"):
        check_combination(make_cell("none", fusion, adaptive_softmax_cutoff="5", tie_adaptive_weights=True))


@pytest.mark.parametrize("kind", ["transformer", "LSTM", "prefix LM"])
def test_a_translation_model_is_no_language_model(request: pytest.FixtureRequest, dictionary: Any, kind: str) -> None:
    """fairseq-eval-lm of one, or --task language_modeling by mistake."""
    models = {"transformer": TransformerLMFusion, "LSTM": LSTMFusion, "prefix LM": PrefixLM}
    flags = {"transformer": "make_cfg", "LSTM": "make_lstm_cfg", "prefix LM": "make_prefix_cfg"}
    task = LanguageModelingTask(Namespace(), dictionary)
    with pytest.raises(InputError, match="--task"):
        models[kind].build_model(request.getfixturevalue(flags[kind])(), task)
