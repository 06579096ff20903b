"""Decoding with a language model on the target side: cached, and equal to the full pass."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.search import BeamSearch, DiverseBeamSearch, LexicallyConstrainedBeamSearch, Sampling, Search
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints
from torch import Tensor

EOS = 2
FUSIONS = ("none", "elmo", "finetune")
CELLS = [(src, tgt) for src in FUSIONS for tgt in FUSIONS]


@pytest.fixture
def source(net_input: dict[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's input alone."""
    return {name: net_input[name] for name in ("src_tokens", "src_lengths")}


PREFIX = torch.tensor([[2, 5, 8, 4, 9, 6], [2, 4, 4, 7, 9, 5], [2, 9, 6, 6, 8, 4]])


@pytest.mark.parametrize(("src", "tgt"), CELLS)
@torch.no_grad()
def test_step_by_step_equals_the_full_pass(make_model: Any, source: dict[str, Tensor], src: str, tgt: str) -> None:
    model = make_model(src, tgt)
    encoder_out = model.encoder(**source)
    full = model.decoder(PREFIX, encoder_out=encoder_out)[0]
    state: dict[str, Any] = {}
    for end in range(1, PREFIX.size(1) + 1):
        step = model.decoder(PREFIX[:, :end], encoder_out=encoder_out, incremental_state=state)[0]
        assert step.size(1) == 1
        torch.testing.assert_close(step[:, 0], full[:, end - 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("tgt", ["elmo", "finetune"])
@pytest.mark.parametrize("new_order", [[2, 0, 1], [1, 1, 0], [2, 0]], ids=["permuted", "copied", "shrunk"])
@torch.no_grad()
def test_everything_cached_follows_the_beam(
    make_model: Any, source: dict[str, Tensor], tgt: str, new_order: list[int]
) -> None:
    """As in beam search, where hypotheses change places within a sentence only."""
    model, order = make_model("elmo", tgt), torch.tensor(new_order)
    encoder_out = model.encoder(**{name: value[:1].repeat_interleave(3, 0) for name, value in source.items()})
    state: dict[str, Any] = {}
    for end in (1, 2, 3):
        model.decoder(PREFIX[:, :end], encoder_out=encoder_out, incremental_state=state)
    model.decoder.reorder_incremental_state_scripting(state, order)
    encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
    beams = PREFIX.index_select(0, order)
    full = model.decoder(beams, encoder_out=encoder_out)[0]
    for end in (4, 5):
        step = model.decoder(beams[:, :end], encoder_out=encoder_out, incremental_state=state)[0]
        torch.testing.assert_close(step[:, 0], full[:, end - 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("tgt", FUSIONS)
def test_every_module_that_keeps_a_state_is_reordered_once(make_model: Any, tgt: str) -> None:
    class Keeper(torch.nn.Module):
        def reorder_incremental_state(self, *arguments: Any) -> None:
            seen.append((self, *arguments))

    seen: list[Any] = []
    model, keepers = make_model("none", tgt), [Keeper(), Keeper()]
    model.decoder.layers[0].added, model.decoder.embed_tokens.added = keepers
    state: dict[str, Any] = {}
    order = torch.tensor([1, 0])
    model.decoder.reorder_incremental_state_scripting(state, order)
    assert {keeper for keeper, *_ in seen} == set(keepers)
    assert len(seen) == 2
    assert all(given[0] is state and given[1] is order for _, *given in seen)


@pytest.mark.parametrize("tgt", ["elmo", "finetune"])
@torch.no_grad()
def test_a_step_costs_the_lm_one_position(make_model: Any, source: dict[str, Tensor], tgt: str) -> None:
    """The released code ran its LM over the whole prefix at every token."""
    model = make_model("none", tgt)
    tower = model.decoder.embed_tokens.lm.layers
    widths: list[int] = []
    tower.register_forward_pre_hook(lambda _module, args: widths.append(args[0].size(1)))
    encoder_out = model.encoder(**source)
    state: dict[str, Any] = {}
    for end in range(1, 6):
        model.decoder(PREFIX[:, :end], encoder_out=encoder_out, incremental_state=state)
    assert widths == [1] * 5


STRATEGIES: dict[str, Callable[[Dictionary], Search]] = {
    "beam": BeamSearch,
    "sampling": lambda dictionary: Sampling(dictionary, sampling_topk=5),
    "diverse beam": lambda dictionary: DiverseBeamSearch(dictionary, num_groups=2, diversity_strength=0.5),
    "constraints": lambda dictionary: LexicallyConstrainedBeamSearch(dictionary, "ordered"),
}
CONSTRAINTS = [[torch.tensor([7])], [torch.tensor([6, 5])], [torch.tensor([4]), torch.tensor([8])]]


@pytest.mark.parametrize(("src", "tgt"), [("none", "elmo"), ("none", "finetune"), ("elmo", "finetune")])
@pytest.mark.parametrize("prefix", [None, PREFIX[:, 1:3]], ids=["", "forced prefix"])
@pytest.mark.parametrize("strategy", ["beam", "sampling", "constraints"])
@torch.no_grad()
def test_scores_of_a_search_are_those_of_the_full_pass(
    *,
    make_model: Any,
    task: Any,
    source: dict[str, Tensor],
    src: str,
    tgt: str,
    prefix: Tensor | None,
    strategy: str,
) -> None:
    """fairseq's own generator: beams cross, finished sentences leave the batch, prefixes are forced."""
    model = make_model(src, tgt)
    model.decoder.layers[-1].final_layer_norm.bias += 0.5  # together they make </s> likelier:
    model.decoder.output_projection.weight[EOS] += 0.5  # hypotheses end early and late
    search = STRATEGIES[strategy](task.target_dictionary)
    flags = {"beam_size": 4, "max_len_b": 9, "min_len": 4, "normalize_scores": False, "search_strategy": search}
    generator = SequenceGenerator([model], task.target_dictionary, **flags)
    constraints = pack_constraints(CONSTRAINTS) if search.supports_constraints else None
    found = generator.generate([model], {"net_input": source}, prefix_tokens=prefix, constraints=constraints)
    lengths = set()
    for row, hypotheses in enumerate(found):
        assert hypotheses
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"]
            lengths.add(len(tokens))
            if prefix is not None:
                assert tokens[:2].tolist() == prefix[row].tolist()
            shifted = torch.cat([torch.tensor([EOS]), tokens[:-1]]).unsqueeze(0)
            alone = {name: value[row : row + 1] for name, value in source.items()}
            scores = model(**alone, prev_output_tokens=shifted)[0].log_softmax(-1)[0]
            expected = scores.gather(1, tokens.unsqueeze(1)).squeeze(1)
            torch.testing.assert_close(hypothesis["positional_scores"], expected, rtol=0, atol=1e-4)
        if constraints is not None:
            assert all(set(wanted.tolist()) <= set(hypotheses[0]["tokens"].tolist()) for wanted in CONSTRAINTS[row])
    assert len(lengths) > 1 or constraints is not None


@pytest.mark.parametrize(
    ("src", "tgt", "strategy"),
    [
        *((src, tgt, "beam") for src, tgt in CELLS),
        *(("none", "elmo", name) for name in STRATEGIES if name != "beam"),
        *(("elmo", "finetune", name) for name in STRATEGIES if name != "beam"),
    ],
)
@torch.no_grad()
def test_a_search_finds_the_same_without_any_cache(
    make_model: Any, task: Any, source: dict[str, Tensor], src: str, tgt: str, strategy: str
) -> None:
    """Token for token; scores, which a diverse beam search lowers by its penalties, to 1e-4."""
    model = make_model(src, tgt)
    search = STRATEGIES[strategy](task.target_dictionary)
    flags = {"beam_size": 4, "max_len_b": 9, "min_len": 2, "search_strategy": search}
    generator = SequenceGenerator([model], task.target_dictionary, **flags)
    constraints = pack_constraints(CONSTRAINTS) if search.supports_constraints else None
    found = []
    for generator.model.has_incremental in (True, False):
        torch.manual_seed(1)
        found.append(generator.generate([model], {"net_input": source}, constraints=constraints))
    for cached, uncached in zip(*found):
        assert [ours["tokens"].tolist() for ours in cached] == [theirs["tokens"].tolist() for theirs in uncached]
        for ours, theirs in zip(cached, uncached):
            torch.testing.assert_close(ours["score"], theirs["score"], rtol=0, atol=1e-4)


@torch.no_grad()
def test_ensemble_members_keep_their_caches_apart(make_model: Any, task: Any, source: dict[str, Tensor]) -> None:
    models = [make_model("none", "elmo"), make_model("elmo", "finetune")]
    generator = SequenceGenerator(models, task.target_dictionary, beam_size=2, max_len_b=6, normalize_scores=False)
    for row, hypotheses in enumerate(generator.generate(models, {"net_input": source})):
        tokens = hypotheses[0]["tokens"]
        shifted = torch.cat([torch.tensor([EOS]), tokens[:-1]]).unsqueeze(0)
        alone = {name: value[row : row + 1] for name, value in source.items()}
        shares = [model(**alone, prev_output_tokens=shifted)[0].softmax(-1)[0] for model in models]
        expected = (sum(shares) / 2).log().gather(1, tokens.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(hypotheses[0]["positional_scores"], expected, rtol=0, atol=1e-4)
