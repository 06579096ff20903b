"""What every layer of a converted model makes of one sentence, to be compared with what the released code makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from lmfusion.convert.variant import HIDES_SELF, ReleasedLM
from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.fusion.source import SourceEmbedding
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.lm.vocabulary import Framed

SEPARATOR = "|||"
FIRST = 4  # channels shown


@dataclass(frozen=True)
class Summary:
    """Hold what a model makes of one sentence.

    Attributes:
        inputs: what was read: its name, the indices, and words that are not in the dictionary.
        states: by name in the order of computation, 1 x T x C each.
    """

    inputs: list[tuple[str, list[int], list[str]]]
    states: dict[str, Tensor]

    def lines(self) -> Iterator[str]:
        """Yield lines for the terminal: of each state mean and standard deviation, and channels of its first word."""
        for name, tokens, unknown in self.inputs:
            yield f"{name}: {' '.join(map(str, tokens))}" + (f"  (unknown: {' '.join(unknown)})" if unknown else "")
        width = max(map(len, self.states))
        yield f"{'':<{width}}  {'mean':>10} {'std':>10}  first values"
        for name, state in self.states.items():
            values = state.double()
            first = " ".join(f"{value:>9.5f}" for value in values[0, 0, :FIRST].tolist())
            yield f"{name:<{width}}  {values.mean():>10.6f} {values.std(correction=0):>10.6f}  {first}"


@torch.no_grad()
def summarize(model: nn.Module, sample: str) -> Summary:
    """Run a model on one sentence.

    Args:
        model: converted, in eval mode.
        sample: tokens as in its training data (BPE applied), separated by spaces; for a sequence-to-sequence model
            ``source ||| target`` or the source alone.

    Returns:
        Every state, in float32.

    Raises:
        InputError: if there is nothing to read.
    """
    source, _, target = (part.strip() for part in sample.partition(SEPARATOR))
    if not source:
        raise InputError("--check needs a sentence: tokens as in the training data, separated by spaces.")
    if isinstance(model, TransformerLMFusion):
        return _of_seq2seq(model, source, target)
    assert isinstance(model, (ClozeLM, CausalLM))
    if target:
        raise InputError(f"--check: {SEPARATOR} separates source and target, and this is a language model.")
    tokens, unknown = _encoded(model.dictionary, source)
    tokens = model.vocabulary.frame(tokens[None]).tokens[0][: None if model.sees_future else -1]
    states = {**dict(_of_lm(model, tokens[None])), **dict(_logits(model, tokens[None]))}
    return Summary([("tokens", tokens.tolist(), unknown)], states)


def _encoded(dictionary: Dictionary, text: str) -> tuple[Tensor, list[str]]:
    """Return the indices of words and </s>, and the words that are unknown."""
    words = text.split()
    indices = [dictionary.index(word) for word in words]
    return torch.tensor([*indices, dictionary.eos()]), [w for w, i in zip(words, indices) if i == dictionary.unk()]


def _of_lm(lm: PretrainedLM, tokens: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield the states of a language model, each tower's by itself."""
    if not isinstance(lm, ClozeLM):
        for number, state in enumerate(lm.layer_states(tokens)):
            yield f"layer {number}" if number else "embeddings", state
        return
    forward, backward = lm.tower_states(tokens, RowLayout(tokens.eq(lm.padding_idx)))
    yield "embeddings", forward[0]
    for number, (left, right) in enumerate(zip(forward[1:], backward[1:]), start=1):
        yield f"layer {number} forward", left
        yield f"layer {number} backward", right
    if lm.join is not None:
        is_hidden = isinstance(lm, ReleasedLM) and lm.output_spec.top == HIDES_SELF
        yield f"joined, token {'hidden' if is_hidden else 'visible'}", lm.top_state(tokens)


def _logits(lm: ClozeLM | CausalLM, tokens: Tensor) -> Iterator[tuple[str, Tensor]]:
    logits = lm(tokens)[0].flatten(0, -3)  # one row for each target
    for target, values in zip(lm.targets if isinstance(lm, ClozeLM) else ["future"], logits):
        yield f"logits ({target})", values[None]


def _of_seq2seq(model: TransformerLMFusion, source: str, target: str) -> Summary:
    tokens, unknown = _encoded(model.encoder.dictionary, source)
    prefix, strange = _encoded(model.decoder.dictionary, target)
    prefix = prefix.roll(1)  # </s> w1 ... wn
    for side, row, part in (("source", tokens, model.encoder), ("target", prefix, model.decoder)):
        if len(row) > (limit := part.max_positions()):
            raise InputError(f"--check: the {side} has {len(row)} tokens with its </s>, and the model reads {limit}.")
    encoded = model.encoder(tokens[None], torch.tensor([len(tokens)]), return_all_hiddens=True)
    logits, extra = model.decoder(prefix[None], encoder_out=encoded)
    states = [
        *_of_embedding("source", model.encoder.embed_tokens, tokens[None]),
        ("encoder input", encoded["encoder_states"][0].transpose(0, 1)),
        *_of_stack("encoder", encoded["encoder_states"][1:]),
        ("encoder output", encoded["encoder_out"][0].transpose(0, 1)),
        *_of_embedding("target", model.decoder.embed_tokens, prefix[None]),
        ("decoder input", extra["inner_states"][0].transpose(0, 1)),
        *_of_stack("decoder", extra["inner_states"][1:]),
        ("logits", logits),
    ]
    inputs = [("source", tokens.tolist(), unknown), ("target so far", prefix.tolist(), strange)]
    return Summary(inputs, dict(states))


def _of_stack(part: str, states: list[Tensor]) -> Iterator[tuple[str, Tensor]]:
    for number, state in enumerate(states, start=1):  # T x B x C
        yield f"{part} layer {number}", state.transpose(0, 1)


def _of_embedding(side: str, embedding: nn.Module, tokens: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield what stands where word embeddings stand, after the states of the language model that it is made of."""
    lm = getattr(embedding, "lm", None)
    if isinstance(lm, PretrainedLM):
        framed = lm.vocabulary.frame(tokens) if isinstance(embedding, SourceEmbedding) else Framed(tokens, slice(None))
        for name, state in _of_lm(lm, framed.tokens):
            yield f"{side} LM, {name}", state
    yield f"{side} embeddings", embedding(tokens)
