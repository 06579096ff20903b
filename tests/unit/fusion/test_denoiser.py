"""Denoisers: the noise of fairseq's task, and models of translation that start from one."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task

from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.inference.hub import load_model
from lmfusion.inspection import inspect_checkpoint
from lmfusion.lm.symbols import dictionary_of

MASKED, MEAN_SPAN, WORDS = 0.35, 3.5, 200
NOISE = ["--mask-length", "span-poisson", "--mask", str(MASKED), "--poisson-lambda", str(MEAN_SPAN)]
NOISE += ["--replace-length", "1", "--rotate", "0", "--sample-break-mode", "eos"]


def denoising(dictionary: Dictionary) -> SimpleNamespace:
    """What a model asks of fairseq's task, which puts <mask> behind the symbols."""
    larger = dictionary_of([*dictionary.symbols, "<mask>"])
    return SimpleNamespace(source_dictionary=larger, target_dictionary=larger, mask_idx=len(larger) - 1)


def translating(source: Dictionary, target: Dictionary) -> SimpleNamespace:
    return SimpleNamespace(source_dictionary=source, target_dictionary=target)


@pytest.mark.parametrize("flags", [{"share_all_embeddings": True}, {"share_decoder_input_output_embed": True}, {}])
@torch.no_grad()
def test_a_model_that_starts_from_a_denoiser_has_its_weights_and_computes_what_it_does(
    make_cfg: Any, dictionary: Dictionary, shake: Any, net_input: Any, flags: dict[str, Any]
) -> None:
    denoiser = shake(TransformerLMFusion.build_model(make_cfg(**flags), denoising(dictionary))).eval()
    model = TransformerLMFusion.build_model(make_cfg(**flags), translating(dictionary, dictionary)).eval()
    weights = denoiser.state_dict()
    model.load_state_dict(weights, strict=True)
    size = len(dictionary)
    for name, found in model.state_dict().items():
        expected = weights[name]
        assert torch.equal(found, expected[: len(found)]), name
        assert len(found) == len(expected) or (len(expected), len(found)) == (size + 1, size), name
    logits, _ = denoiser(**net_input)
    torch.testing.assert_close(model(**net_input)[0], logits[..., :size], rtol=0, atol=1e-6)
    assert "symbol_table.codes" in weights
    assert "symbol_table.codes" not in model.state_dict(), "what is trained from here on is a translation model"


@pytest.mark.parametrize("flags", [{"share_all_embeddings": True}, {}])
def test_a_recurrent_model_starts_from_one_too(
    make_lstm_cfg: Any, dictionary: Dictionary, shake: Any, flags: dict[str, Any]
) -> None:
    denoiser = shake(LSTMFusion.build_model(make_lstm_cfg(**flags), denoising(dictionary)))
    model = LSTMFusion.build_model(make_lstm_cfg(**flags), translating(dictionary, dictionary))
    model.load_state_dict(denoiser.state_dict(), strict=True)
    for name, found in model.state_dict().items():
        assert torch.equal(found, denoiser.state_dict()[name][: len(found)]), name


@pytest.mark.parametrize("side", ["source", "target"])
def test_another_dictionary_on_either_side_is_refused(
    make_cfg: Any, dictionary: Dictionary, other_dictionary: Dictionary, side: str
) -> None:
    denoiser = TransformerLMFusion.build_model(make_cfg(), denoising(dictionary))
    sides = {"source": dictionary, "target": dictionary, side: other_dictionary}
    model = TransformerLMFusion.build_model(make_cfg(), translating(**sides))
    with pytest.raises(InputError, match=f"the {side} dictionary .* index 7.*'w3'.*'x'"):
        model.load_state_dict(denoiser.state_dict())


def test_a_dictionary_with_more_symbols_is_refused(make_cfg: Any, dictionary: Dictionary) -> None:
    denoiser = TransformerLMFusion.build_model(make_cfg(), denoising(dictionary))
    larger = dictionary_of([*dictionary.symbols, "new", "newer"])
    model = TransformerLMFusion.build_model(make_cfg(), translating(larger, larger))
    with pytest.raises(InputError, match=r"index 24.*'<mask>'.*'new'"):
        model.load_state_dict(denoiser.state_dict())


def test_a_denoiser_loads_its_own_weights_and_those_that_were_saved_without_symbols(
    make_cfg: Any, dictionary: Dictionary, shake: Any
) -> None:
    denoiser = shake(TransformerLMFusion.build_model(make_cfg(), denoising(dictionary)))
    again = TransformerLMFusion.build_model(make_cfg(), denoising(dictionary))
    weights = denoiser.state_dict()
    again.load_state_dict({name: weight for name, weight in weights.items() if name != "symbol_table.codes"})
    for state in (again.state_dict(), again.load_state_dict(weights) and again.state_dict()):
        assert all(torch.equal(state[name], weights[name]) for name in weights)


def test_a_language_model_without_a_mask_has_no_place_in_a_denoiser(make_cell: Any, dictionary: Dictionary) -> None:
    with pytest.raises(InputError, match=r"the source dictionary .*'<mask>'"):
        TransformerLMFusion.build_model(make_cell("elmo", "none"), denoising(dictionary))


@pytest.mark.parametrize(("length", "refused"), [("span-poisson", True), ("subword", False)])
def test_whole_words_of_a_bpe_that_fairseq_cannot_load_are_refused(
    make_cfg: Any, dictionary: Dictionary, length: str, refused: bool
) -> None:
    task = denoising(dictionary)
    task.cfg = SimpleNamespace(bpe="sentencepiece", mask_length=length)
    with pytest.raises(InputError, match="--bpe sentencepiece") if refused else nullcontext():
        TransformerLMFusion.build_model(make_cfg(), task)


def test_inspect_tells_a_denoiser_from_a_translation_model(
    make_cfg: Any, dictionary: Dictionary, tmp_path: Path
) -> None:
    kinds = []
    for task in (denoising(dictionary), translating(dictionary, dictionary)):
        cfg = make_cfg()
        model = TransformerLMFusion.build_model(cfg, task)
        state = {"cfg": {"model": {**vars(cfg), "_name": "transformer_lmfusion"}}, "model": model.state_dict()}
        torch.save({"args": None, **state}, tmp_path / "model.pt")
        kinds.append(inspect_checkpoint(tmp_path / "model.pt").kind)
    assert kinds == ["sequence-to-sequence model that learned to denoise", "sequence-to-sequence model"]


def test_a_denoiser_is_not_loaded_to_translate(make_cfg: Any, dictionary: Dictionary, tmp_path: Path) -> None:
    cfg = make_cfg()
    model = TransformerLMFusion.build_model(cfg, denoising(dictionary))
    config = {"model": {**vars(cfg), "_name": "transformer_lmfusion"}, "task": {"_name": "denoising", "data": "."}}
    torch.save({"args": None, "cfg": config, "model": model.state_dict()}, tmp_path / "model.pt")
    with pytest.raises(InputError, match="--finetune-from-model"):
        load_model(tmp_path / "model.pt")


@pytest.fixture
def rising(tmp_path: Path) -> Any:
    """fairseq's task on 120 sentences of 20 to 60 words that rise by one, so that every gap in them can be seen."""
    (tmp_path / "dict.txt").write_text("".join(f"w{number} 1\n" for number in range(WORDS)), encoding="utf-8")
    builder = MMapIndexedDatasetBuilder(str(tmp_path / "train.bin"), dtype=np.uint16)
    lengths = np.random.default_rng(0).integers(20, 61, size=120)
    for number, length in enumerate(lengths):
        builder.add_item(torch.tensor([*range(4 + number % 100, 4 + number % 100 + length), 2]))
    builder.finalize(str(tmp_path / "train.idx"))
    parser = options.get_training_parser("denoising")
    words = [str(tmp_path), "--task", "denoising", "--arch", "transformer", *NOISE]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    task = setup_task(cfg.task)
    task.load_dataset("train")
    return task, lengths


def simulated(lengths: Any) -> tuple[float, float]:
    """The share of words that BART's spans cover, and the mean length of a gap; over many sentences of these lengths.

    Lengths are drawn from Poisson's distribution until they are the share asked for, the last one cut; each begins at a
    word of its own, and ends with the sentence at the latest, so that spans may overlap.
    """
    rng, covered, gaps = np.random.default_rng(1), 0, 0
    for count in np.tile(lengths, 50):
        left, spans = int(np.ceil(MASKED * count)), []
        while left > 0:
            spans.append(min(left, rng.poisson(MEAN_SPAN)))
            left -= spans[-1]
        gone = np.zeros(count + 1, dtype=bool)
        for start, length in zip(rng.permutation(count), filter(None, spans)):
            gone[start : min(start + length, count)] = True
        covered += gone.sum()
        gaps += (gone[1:] < gone[:-1]).sum()
    return covered / (50 * lengths.sum()), covered / gaps


def test_the_share_of_masked_words_and_their_spans_are_those_asked_for(rising: Any) -> None:
    task, lengths = rising
    mask, gone, spans, masks = task.mask_idx, 0, [], 0
    assert task.dictionary[mask] == "<mask>"
    assert mask == WORDS + 4
    for index in range(len(lengths)):
        sample = task.datasets["train"][index]
        source, target = sample["source"].tolist(), sample["target"].tolist()
        words = target[1:-1]
        assert (target[0], target[-1]) == (source[0], source[-1]) == (0, 2)
        assert words == list(range(words[0], words[0] + lengths[index])), "the target is the sentence itself"
        kept = [number for number in source[1:-1] if number != mask]
        assert kept == sorted(set(kept) & set(words)), "what is left stands in its order"
        asked = int(np.ceil(MASKED * len(words)))
        gone += (missing := len(words) - len(kept))
        assert 0 <= missing <= asked
        masks += source.count(mask)
        edges = [words[0] - 1, *kept, words[-1] + 1]
        spans += [after - before - 1 for before, after in zip(edges, edges[1:]) if after - before > 1]
    assert masks < gone, "one <mask> stands for a span"
    share, mean = simulated(lengths)
    assert gone / lengths.sum() == pytest.approx(share, abs=0.015)
    assert np.mean(spans) == pytest.approx(mean, rel=0.1)
