"""Pretraining through fairseq's own task: what a sample is, what is predicted, what a loss is."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
from fairseq import options
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from omegaconf import OmegaConf

from lmfusion.errors import InputError
from lmfusion.lm.causal import UniTransformerLanguageModel
from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.lm.loading import load_lm
from lmfusion.lm.recurrent import BiRecurrentLanguageModel
from lmfusion.lm.recurrent_layers import RecurrentLMConfig

EOS, PAD = 2, 1
LINES = ["w1 w7 w2", "w5", "w3 w3 w9 w4 w19"]  # indices: w0 is 4
IDS = [[5, 11, 6], [9], [7, 7, 13, 8, 23]]
SIZES = ["--decoder-embed-dim=16", "--decoder-ffn-embed-dim=24", "--decoder-layers=2", "--decoder-attention-heads=2"]


@pytest.fixture
def data(tmp_path: Path, dictionary: Dictionary) -> Path:
    """A data set as fairseq-preprocess makes it."""
    (tmp_path / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    dictionary.save(str(tmp_path / "dict.txt"))
    binarizer = VocabularyDatasetBinarizer(dictionary, append_eos=True)
    FileBinarizer.multiprocess_dataset(str(tmp_path / "text"), "mmap", binarizer, str(tmp_path / "train"))
    return tmp_path


@pytest.fixture
def lm_task(data: Path) -> Callable[..., LanguageModelingTask]:
    """fairseq's language_modeling task with ``--sample-break-mode eos`` and these flags."""

    def make(**flags: Any) -> LanguageModelingTask:
        rest = {"dataset_impl": None, "seed": 1, "plasma_path": None, "use_plasma_view": False}
        cfg = LanguageModelingConfig(data=str(data), sample_break_mode="eos", tokens_per_sample=30, **rest, **flags)
        task = LanguageModelingTask.setup_task(cfg)
        task.load_dataset("train")
        return task

    return make


def collated(task: LanguageModelingTask) -> dict[str, Any]:
    dataset = task.dataset("train")
    sample: dict[str, Any] = dataset.collater([dataset[index] for index in range(len(dataset))])
    return sample


def without_padding(rows: torch.Tensor) -> list[list[int]]:
    return sorted([token for token in row if token != PAD] for row in rows.tolist())


def test_cloze_sample_is_a_sentence_between_two_ends_and_every_position_a_target(lm_task: Any) -> None:
    sample = collated(lm_task(self_target=True))
    assert without_padding(sample["net_input"]["src_tokens"]) == sorted([EOS, *ids, EOS] for ids in IDS)
    assert torch.equal(sample["target"], sample["net_input"]["src_tokens"])


def test_causal_sample_predicts_the_words_and_the_end(lm_task: Any) -> None:
    sample = collated(lm_task())
    assert without_padding(sample["net_input"]["src_tokens"]) == sorted([EOS, *ids] for ids in IDS)
    assert without_padding(sample["target"]) == sorted([*ids, EOS] for ids in IDS)


def language_model(task: LanguageModelingTask, **flags: Any) -> BiTransformerLanguageModel:
    values = {"decoder_embed_dim": 16, "decoder_ffn_embed_dim": 24, "decoder_layers": 1, "decoder_attention_heads": 2}
    config = BiTransformerLanguageModel.__dataclass(**values, tokens_per_sample=30, max_target_positions=30, **flags)
    return BiTransformerLanguageModel.build_model(config, task)


def test_targets_of_a_cloze_lm_are_those_of_the_sample(lm_task: Any) -> None:
    task = lm_task(self_target=True)
    model, sample = language_model(task), collated(task)
    net_output = model(**sample["net_input"])
    assert torch.equal(model.get_targets(sample, net_output), sample["target"])


def test_several_targets_are_stacked_as_the_logits_are(lm_task: Any) -> None:
    """Logits B x K x T x V and targets B x K x T: the next word, then the previous one."""
    task = lm_task(future_target=True, past_target=True)
    model, sample = language_model(task), collated(task)
    net_output = model(**sample["net_input"])
    targets = model.get_targets(sample, net_output)
    assert net_output[0].shape == (*targets.shape, len(task.dictionary))
    source = sample["net_input"]["src_tokens"]
    future, past = targets.unbind(1)
    for row, ahead, behind in zip(source.tolist(), future.tolist(), past.tolist()):
        length = row.index(PAD) if PAD in row else len(row)
        assert ahead[: length - 1] == row[1:length]
        assert behind[1:length] == row[: length - 1]


@pytest.mark.parametrize(
    "flags", [{"self_target": True}, {"future_target": True, "past_target": True}], ids=["cloze", "pair"]
)
def test_loss_is_the_cross_entropy_of_every_real_target(lm_task: Any, flags: dict[str, bool]) -> None:
    task = lm_task(**flags)
    model, sample = language_model(task).eval(), collated(task)
    loss, sample_size, _ = CrossEntropyCriterion(task, sentence_avg=False)(model, sample)
    logits = model(**sample["net_input"])[0].double()
    targets = model.get_targets(sample, None)
    expected = 0.0
    for logit, target in zip(logits.flatten(0, -2), targets.flatten().tolist()):
        if target != PAD:
            expected += (logit.exp().sum().log() - logit[target]).item()
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert sample_size == sum(len(ids) + 2 for ids in IDS)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_validation_tells_the_perplexity_of_each_direction_of_a_pair(lm_task: Any, kind: str) -> None:
    """fairseq's own is near the product of both: their sum, divided by the symbols of the source."""
    task = lm_task(future_target=True, past_target=True)
    recurrent = RecurrentLMConfig(decoder_embed_dim=16, decoder_layers=1, max_target_positions=30)
    model: Any = BiRecurrentLanguageModel.build_model(recurrent, task) if kind == "recurrent" else language_model(task)
    criterion, sample = CrossEntropyCriterion(task, sentence_avg=False), collated(task)
    assert not [name for name in criterion(model.train(), sample)[2] if "future" in name], "training is left as it is"
    halves = [collated(task), collated(task)]
    halves[1]["net_input"]["src_tokens"][1:] = PAD
    for target in halves[1]["target"]:
        target[1:] = PAD
    with metrics.aggregate() as found:
        CrossEntropyCriterion.reduce_metrics([criterion(model.eval(), half)[2] for half in halves])
    values = found.get_smoothed_values()
    for number, name in enumerate(("future", "past")):
        scores = []
        for half in halves:
            logits = model(**half["net_input"])[0].double()
            for logit, target in zip(logits[:, number].flatten(0, 1), half["target"][:, number].flatten().tolist()):
                if target != PAD:
                    scores.append((logit.exp().sum().log() - logit[target]).item())
        assert values[f"ppl_{name}"] == pytest.approx(math.exp(sum(scores) / len(scores)), rel=5e-3)  # logged rounded
        assert len(scores) == sum(len(ids) + 1 for ids in IDS) + len(halves[1]["target"][0, 0].ne(PAD).nonzero())


def test_scoring_one_word_a_position_refuses_a_model_that_predicts_two(lm_task: Any) -> None:
    task = lm_task(future_target=True, past_target=True)
    with pytest.raises(InputError, match="fairseq-validate"):
        SequenceScorer(task.dictionary).generate([language_model(task)], collated(task))


def test_what_fairseq_saves_is_what_load_lm_reads(data: Path, tmp_path: Path) -> None:
    """From the command line's flags to a loaded model, with fairseq's own config in the file."""
    flags = [str(data), "--task", "language_modeling", "--arch", "bi_transformer_lm", "--self-target", *SIZES]
    flags += ["--sample-break-mode", "eos", "--tokens-per-sample", "40", "--relu-dropout", "0.07"]
    flags += ["--no-bias-kv", "--single-tower", "--concat-final-q"]
    args = options.parse_args_and_arch(options.get_training_parser(), flags)
    cfg = convert_namespace_to_omegaconf(args)
    model = LanguageModelingTask.setup_task(cfg.task).build_model(cfg.model).eval()
    saved = {"args": None, "cfg": OmegaConf.to_container(cfg, resolve=True), "model": model.state_dict()}
    torch.save(saved, tmp_path / "checkpoint_best.pt")
    lm = load_lm(tmp_path / "checkpoint_best.pt")
    tokens = torch.tensor([[EOS, 5, 9, EOS]])
    assert torch.equal(lm(tokens)[0], model(tokens)[0])
    assert lm.config["activation_dropout"] == 0.07
    assert lm.max_positions() == model.max_positions() == 40
    assert [lm.config[flag] for flag in ("no_bias_kv", "single_tower", "concat_final_q")] == [True] * 3
    assert lm.config["targets"] == ["self"]


def test_supported_targets() -> None:
    """fairseq's task asks before it trains."""
    stub = SimpleNamespace()
    assert BiTransformerLanguageModel.supported_targets.fget(stub) == {"self", "future", "past"}  # type: ignore[attr-defined]
    assert UniTransformerLanguageModel.supported_targets.fget(stub) == {"future"}  # type: ignore[attr-defined]
