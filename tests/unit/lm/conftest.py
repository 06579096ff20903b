"""Every variant of the two language models: a test that takes one of these fixtures runs once for each."""

from __future__ import annotations

from typing import Any

import pytest

CLOZE_VARIANTS: dict[str, dict[str, Any]] = {
    "learned key/value pair": {},
    "zero key/value pair": {"no_bias_kv": True},
    "no key/value pair": {"no_extra_kv": True},
    "single tower": {"single_tower": True},
    "linear join": {"linear_final_layer": True},
    "linear join with bias": {"linear_final_layer": True, "linear_final_layer_bias": True},
    "double heads": {"double_final_heads": True},
    "concatenated query": {"concat_final_q": True},
    "learned positions": {"decoder_learned_pos": True},
    "no positions": {"no_token_positional_embeddings": True},
    "tied softmax": {"share_decoder_input_output_embed": True},
    "all targets": {"targets": ("self", "future", "past")},
}
CAUSAL_VARIANTS: dict[str, dict[str, Any]] = {
    "sinusoids": {},
    "learned positions": {"decoder_learned_pos": True},
    "no positions": {"no_token_positional_embeddings": True},
    "tied softmax": {"share_decoder_input_output_embed": True},
}


@pytest.fixture(params=CLOZE_VARIANTS.values(), ids=CLOZE_VARIANTS.keys())
def any_cloze_lm(request: pytest.FixtureRequest, make_cloze: Any) -> Any:
    """Every variant of SPEC section 1 that has a joining block."""
    return make_cloze(**request.param)


@pytest.fixture(params=CAUSAL_VARIANTS.values(), ids=CAUSAL_VARIANTS.keys())
def any_causal_lm(request: pytest.FixtureRequest, make_causal: Any) -> Any:
    """Every variant of the unidirectional LM."""
    return make_causal(**request.param)
