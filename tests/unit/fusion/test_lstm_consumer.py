"""``lstm_lmfusion`` against fairseq's ``lstm``, its attention against the equations, and what it refuses."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models.lstm import LSTMModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.utils import clip_grad_norm_
from torch import Tensor

from lmfusion.consumers.additive_attention import AdditiveAttention
from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.errors import InputError
from lmfusion.fairseq_patches.shallow_fusion import check_generating_lm
from lmfusion.fusion.interface import FUSIONS
from lmfusion.lm.recurrent import BiRecurrentLanguageModel, ElmoLM, RecurrentLM, UniRecurrentLanguageModel
from lmfusion.lm.recurrent_layers import RecurrentLMConfig
from lmfusion.lm.transformer.config import plain_config

LAYERS = {"encoder_layers": 2, "decoder_layers": 2}
FORMS: list[dict[str, Any]] = [
    {},
    {**LAYERS, "encoder_bidirectional": True, "decoder_hidden_size": 12},
    {**LAYERS, "share_decoder_input_output_embed": True},
    {**LAYERS, "share_all_embeddings": True},
    {"decoder_attention": "none", "encoder_hidden_size": 12, "dropout": 0.3},
]


@pytest.mark.parametrize("flags", FORMS, ids=["plain", "bidirectional", "tied", "all tied", "no attention"])
def test_without_language_models_it_is_fairseqs_lstm(
    make_lstm_cfg: Any, task: Any, net_input: dict[str, Tensor], flags: dict[str, Any]
) -> None:
    """The same weights after the same seed, and in training the same logits and gradients, bit for bit."""
    cfg = make_lstm_cfg(**flags)
    if cfg.share_all_embeddings:
        task.target_dictionary = task.source_dictionary
    given = {name: value for name, value in vars(cfg).items() if value is not None}
    theirs = Namespace(**{**given, "criterion": "cross_entropy"})
    theirs.decoder_attention = str(cfg.decoder_attention != "none")
    models = []
    for kind, settings in ((LSTMFusion, cfg), (LSTMModel, theirs)):
        torch.manual_seed(5)
        model = kind.build_model(settings, task)
        model(**net_input)[0].square().sum().backward()
        models.append(model)
    ours, fairseqs = ([(name, p.grad) for name, p in model.named_parameters()] for model in models)
    assert [name for name, _ in ours] == [name for name, _ in fairseqs]
    assert all(torch.equal(one, other) for (_, one), (_, other) in zip(ours, fairseqs))


@pytest.mark.parametrize("attention", ["general", "additive"])
def test_products_are_bf16_in_training_alone_and_when_asked_for(
    make_lstm_cfg: Any, task: Any, net_input: dict[str, Tensor], attention: str
) -> None:
    models = []
    for cpu_bf16 in (False, True):
        torch.manual_seed(5)
        cfg = make_lstm_cfg(cpu_bf16=cpu_bf16, decoder_attention=attention, dropout=0.0)
        models.append(LSTMFusion.build_model(cfg, task))
    single, half = (model.train()(**net_input)[0] for model in models)
    assert (single.dtype, half.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(half.float(), single, rtol=0, atol=0.02 * single.abs().max().item())
    half.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in models[1].parameters())
    assert torch.equal(*(model.eval()(**net_input)[0] for model in models))


@torch.no_grad()
def test_additive_attention_is_bahdanaus(shake: Any) -> None:
    """alpha = softmax(v tanh(W s + U h)), in float64, word by word; padding gets nothing."""
    attention = shake(AdditiveAttention(6, 4, 5)).double()
    state, source = torch.randn(2, 6).double(), torch.randn(3, 2, 4).double()
    padding = torch.tensor([[False, False], [False, False], [False, True]])
    attention.read(source)
    found, weights = attention(state, source, padding)
    w, u, v = attention.input_proj.weight, attention.source_proj.weight, attention.score.weight[0]
    for row, length in enumerate((3, 2)):
        scores = torch.stack([v @ torch.tanh(w @ state[row] + u @ source[j, row]) for j in range(length)])
        shares = scores.exp() / scores.exp().sum()
        context = sum(share * source[j, row] for j, share in enumerate(shares))
        expected = torch.tanh(attention.output_proj.weight @ torch.cat([context, state[row]]))
        torch.testing.assert_close(weights[:length, row], shares, rtol=0, atol=1e-6)
        torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-6)
    assert weights[2, 1] == 0


@pytest.mark.parametrize("kind", ["general", "additive", "none"])
@torch.no_grad()
def test_any_order_and_padding_of_rows_gives_the_same(make_lstm_cfg: Any, task: Any, batch: Any, kind: str) -> None:
    model = LSTMFusion.build_model(make_lstm_cfg(decoder_attention=kind, encoder_bidirectional=True), task).eval()
    rows, prefixes = [[6, 7, 2], [2], [5, 9, 4, 11, 2]], torch.tensor([[2, 5, 4], [2, 4, 4], [2, 9, 8]])
    alone = [
        model(torch.tensor([row]), torch.tensor([len(row)]), prefix[None])[0][0] for row, prefix in zip(rows, prefixes)
    ]
    for left in (False, True):
        sources = batch(rows, left=left, width=8)
        together = model(sources, sources.ne(1).sum(1), prefixes)[0]
        torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-6)


@pytest.mark.parametrize("left", [False, True])
@torch.no_grad()
def test_attention_is_to_the_source_as_it_stands_in_the_batch(
    make_lstm_cfg: Any, task: Any, batch: Any, left: bool
) -> None:
    """fairseq reads alignments off it (--print-alignment), and joins it with that of other models, padding included."""
    model = LSTMFusion.build_model(make_lstm_cfg(encoder_bidirectional=True), task).eval()
    rows, prefixes = [[6, 7, 2], [2], [5, 9, 4, 11, 2]], torch.tensor([[2, 5, 4], [2, 4, 4], [2, 9, 8]])
    sources = batch(rows, left=left, width=8)
    encoded = model.encoder(sources, sources.ne(1).sum(1))
    order = torch.tensor([2, 0, 1])
    for each, found in (
        (torch.arange(3), encoded),
        (order, model.encoder.reorder_encoder_out(encoded, order)),
    ):
        attention = model.decoder(prefixes[each], found)[1]
        for place, number in enumerate(each.tolist()):
            row = torch.tensor([rows[number]])
            alone = model.decoder(prefixes[number][None], model.encoder(row, torch.tensor([row.numel()])))[1][0]
            words = sources[number].ne(1)
            torch.testing.assert_close(attention[place][:, words], alone, rtol=0, atol=1e-6)
            assert attention[place][:, ~words].eq(0).all()


@pytest.mark.parametrize(("src", "tgt"), [("elmo", "finetune"), ("finetune", "elmo")])
@torch.no_grad()
def test_scores_in_a_beam_are_those_of_whole_passes(
    make_lstm_cfg: Any,
    src_lm: Path,
    tgt_lm: Path,
    task: Any,
    net_input: dict[str, Tensor],
    shake: Any,
    src: str,
    tgt: str,
) -> None:
    lms = {"src_fusion": src, "src_lm": str(src_lm), "tgt_fusion": tgt, "tgt_lm": str(tgt_lm)}
    model = shake(LSTMFusion.build_model(make_lstm_cfg(**lms, decoder_attention="additive"), task)).eval()
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=4, max_len_b=6, normalize_scores=False)
    source = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
    found = generator.generate([model], {"net_input": source})
    for number, hypotheses in enumerate(found):
        alone = {name: value[number : number + 1] for name, value in source.items()}
        assert len({tuple(each["tokens"].tolist()) for each in hypotheses}) == 4
        for each in hypotheses:
            tokens = each["tokens"]
            prefix = torch.cat([torch.tensor([2]), tokens[:-1]])
            likelihood = model(**alone, prev_output_tokens=prefix[None])[0].log_softmax(-1)[0]
            expected = likelihood.gather(-1, tokens[:, None]).squeeze(-1)
            torch.testing.assert_close(each["positional_scores"], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@torch.no_grad()
def test_a_recurrent_lm_joins_in_the_generator(
    make_lstm_cfg: Any, task: Any, net_input: dict[str, Tensor], shake: Any, cell: str
) -> None:
    """--lm-path: every score is the model's and the weighted LM's."""
    model = shake(LSTMFusion.build_model(make_lstm_cfg(), task)).eval()
    config = RecurrentLMConfig(cell=cell, decoder_embed_dim=8, decoder_layers=1, max_target_positions=20)
    lm = shake(UniRecurrentLanguageModel(RecurrentLM(plain_config(config, RecurrentLMConfig), task.target_dictionary)))
    check_generating_lm(lm.eval(), "--lm-path")
    settings = {"beam_size": 2, "max_len_b": 5, "normalize_scores": False, "lm_model": lm, "lm_weight": 0.4}
    generator = SequenceGenerator([model], task.target_dictionary, **settings)
    source = {name: net_input[name][:1] for name in ("src_tokens", "src_lengths")}
    for each in generator.generate([model], {"net_input": source})[0]:
        tokens = each["tokens"]
        prefix = torch.cat([torch.tensor([2]), tokens[:-1]])[None]
        both = model(**source, prev_output_tokens=prefix)[0].log_softmax(-1) + 0.4 * lm(prefix)[0].log_softmax(-1)
        expected = both[0].gather(-1, tokens[:, None]).squeeze(-1)
        torch.testing.assert_close(each["positional_scores"], expected, rtol=0, atol=1e-5)


def test_a_pair_of_recurrent_lms_scores_no_words_in_the_generator(task: Any) -> None:
    config = RecurrentLMConfig(decoder_embed_dim=8, decoder_layers=1, max_target_positions=20)
    lm = BiRecurrentLanguageModel(ElmoLM(plain_config(config, RecurrentLMConfig), task.target_dictionary))
    with pytest.raises(InputError, match="pair of recurrent language models"):
        check_generating_lm(lm, "--lm-path lm.pt")


def test_the_longest_sentence_is_the_language_models(make_lstm_cfg: Any, src_lm: Path, tgt_lm: Path, task: Any) -> None:
    flags = {"src_fusion": "elmo", "src_lm": str(src_lm), "tgt_fusion": "elmo", "tgt_lm": str(tgt_lm)}
    model = LSTMFusion.build_model(make_lstm_cfg(**flags), task)
    assert model.max_positions() == tuple(min(1024, fusion.lm.max_positions()) for fusion, _ in model.fusions())
    assert max(model.max_positions()) < 1024


def test_gradients_are_no_longer_than_the_clip_norm(
    make_lstm_cfg: Any, task: Any, net_input: dict[str, Tensor]
) -> None:
    """fairseq's --clip-norm, which recurrent models need."""
    model = LSTMFusion.build_model(make_lstm_cfg(), task)
    (1e4 * model(**net_input)[0].square().sum()).backward()
    before = clip_grad_norm_(list(model.parameters()), 0.1)
    after = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    assert before > 1
    assert after <= 0.1 + 1e-6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"encoder_layers": 2}, "--encoder-layers 2 and --decoder-layers 1"),
        ({"decoder_hidden_size": 0}, "--decoder-hidden-size 0"),
        ({"encoder_dropout_out": 1.0}, "--encoder-dropout-out 1: give a probability"),
        ({"share_decoder_input_output_embed": True, "decoder_out_embed_dim": 4}, "--decoder-out-embed-dim 4"),
        ({"share_all_embeddings": True, "decoder_out_embed_dim": 4}, "--share-all-embeddings .* 4"),
        ({"share_all_embeddings": True, "encoder_embed_dim": 4}, "--share-all-embeddings .* 4 and"),
        ({"share_all_embeddings": True, "src_fusion": "elmo", "src_lm": "x.pt"}, "--share-all-embeddings"),
        ({"share_decoder_input_output_embed": True, "tgt_fusion": "elmo", "tgt_lm": "x.pt"}, "SHDEMB"),
        ({"src_fusion": "elmo"}, "--src-fusion elmo needs a language model"),
        ({"src_lm": "x.pt"}, "would be ignored"),
        ({"src_fusion": "elmo", "src_lm": "x.pt", "src_lm_dropout": 0.1}, "--src-lm-dropout would be ignored"),
        ({"store_lm_once": True}, "--store-lm-once would be ignored"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    make_lstm_cfg: Any, task: Any, flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        LSTMFusion.build_model(make_lstm_cfg(**flags), task)


def test_an_integration_inside_the_layers_is_refused(make_lstm_cfg: Any, task: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(FUSIONS["elmo"], "replaces_embeddings", False)
    with pytest.raises(InputError, match="inside the layers of a transformer"):
        LSTMFusion.build_model(make_lstm_cfg(src_fusion="elmo", src_lm="x.pt"), task)


@pytest.mark.parametrize("left_out", [None, "encoder_dropout_in", "decoder_dropout_out"])
def test_each_place_has_its_own_dropout_or_else_the_common_one(
    make_lstm_cfg: Any, task: Any, left_out: str | None
) -> None:
    given = {"encoder_dropout_in": 0.2, "encoder_dropout_out": 0.3, "decoder_dropout_in": 0.4}
    given |= {"decoder_dropout_out": 0.5}
    flags = {name: rate for name, rate in given.items() if name != left_out}
    model = LSTMFusion.build_model(make_lstm_cfg(dropout=0.1, **flags), task)
    for name in given:
        stack, _, place = name.partition("_")
        assert getattr(getattr(model, stack), f"{place}_module").p == flags.get(name, 0.1), name


def test_additive_attention_keeps_nothing_of_a_batch(make_lstm_cfg: Any, task: Any, net_input: Any) -> None:
    """Else a model holds a graph between steps, and cannot be copied."""
    model = LSTMFusion.build_model(make_lstm_cfg(decoder_attention="additive"), task).train()
    model(**net_input)[0].sum().backward()
    assert model.decoder.attention._keys is None
