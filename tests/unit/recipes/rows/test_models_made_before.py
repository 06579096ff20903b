"""Rows that start from, or read, a model that their script trains before: denoisers, baselines, language models."""

from __future__ import annotations

from typing import Any

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from row_groups import BERT_ROWS, CLOZE, DENOISING, NUMBERS, SECOND_STAGES

from lmfusion.fusion.combinations import check_combination


@pytest.mark.parametrize("row", DENOISING)
def test_a_denoiser_of_both_languages_has_the_sizes_of_the_row_that_starts_from_it(
    row: str, recipes: Any, parse: Any
) -> None:
    plain, ties, name = DENOISING[row]
    for script in (plain, row):
        recipes.succeed(f"debian_ende/{script}.sh", DENOISER_UPDATES="70")
    without, command, denoiser = (recipes.command(run) for run in (plain, row, name))
    start = [*ties, "--finetune-from-model", f"{recipes.out}/{name}/checkpoints/checkpoint_best.pt"]
    assert command == [word.replace(f"/{plain}/", f"/{row}/") for word in without] + start
    (merged,) = [call for call in recipes.calls() if "lmfusion.text.merged" in call]
    assert merged[-4:-2] == [f"{recipes.out}/data/lm.en", f"{recipes.out}/data/lm.de"]
    assert merged[-1] == denoiser[1]
    found = [
        convert_namespace_to_omegaconf(parse(words, task))
        for words, task in ((denoiser, "denoising"), (command, "translation"))
    ]
    sizes = [{key: value for key, value in cfg.model.items() if key != "data"} for cfg in found]
    assert sizes[0] == sizes[1]
    noise = found[0].task
    assert (noise.mask, noise.poisson_lambda, noise.mask_random, noise.replace_length) == (0.35, 3.5, 0.1, 1)
    assert (noise.mask_length, noise.sample_break_mode, noise.rotate, noise.insert) == ("span-poisson", "eos", 0, 0)
    assert found[0].optimization.max_update == 70


@pytest.mark.parametrize("row", DENOISING)
def test_a_denoiser_of_ones_own_text_is_trained_and_is_what_its_row_starts_from(row: str, recipes: Any) -> None:
    name = DENOISING[row][2]
    own = {"DATA_DIR": str(recipes.out / "data"), "SRC": "en", "TGT": "de", "TOKENIZER": "none"}
    for script in (name, row):
        recipes.succeed(f"own/{script}.sh", **own)
    saved, command = recipes.command(name), recipes.command(row)
    assert command[-2:] == ["--finetune-from-model", f"{recipes.out}/{name}/checkpoints/checkpoint_best.pt"]
    assert saved[saved.index("--save-dir") + 1] == f"{recipes.out}/{name}/checkpoints"


@pytest.mark.parametrize(("rates", "rate"), [({}, "0.001"), ({"SECOND_LR": "0.0007"}, "0.0007")])
@pytest.mark.parametrize("row", SECOND_STAGES)
def test_a_second_stage_is_the_row_from_scratch_but_for_its_start_and_a_lower_rate(
    row: str, rates: dict[str, str], rate: str, recipes: Any
) -> None:
    first = SECOND_STAGES[row]
    for name, settings in ((first, {}), (row, rates)):
        recipes.succeed(f"debian_ende/{name}.sh", S2S_LR="0.003", **settings)
    expected = [word.replace(f"/{first}/", f"/{row}/") for word in recipes.command(first)]
    expected[expected.index("--lr") + 1] = rate
    expected += ["--finetune-from-model", f"{recipes.out}/baseline/checkpoints/checkpoint_best.pt"]
    assert recipes.command(row) == expected
    baseline = recipes.command("baseline")
    assert baseline[baseline.index("--lr") + 1] == "0.003"
    last = (("baseline", "train"), (row, "train"), (row, "generate"))
    assert recipes.steps()[-3:] == [[f"{recipes.out}/{name}", step] for name, step in last]


def test_the_english_causal_lm_is_pretrained_once_for_both_rows(recipes: Any) -> None:
    for row in ("tgt_elmo", "tgt_ft"):
        recipes.succeed(f"debian_synopsis/{row}.sh")
    prepared = [call[-2:] for call in recipes.calls() if call[0].endswith("prepare.py")]
    assert prepared.count(["--lm-langs", "en"]) == 2
    trained = [call for call in recipes.calls() if call[2:4] == [f"{recipes.out}/causal.en", "train"]]
    assert trained[0] == trained[1], "so that the second finds the first one's run finished"
    assert f"{recipes.out}/data/lm.en" in trained[0]
    assert "uni_transformer_lm" in trained[0]
    assert "--self-target" not in trained[0]


@pytest.mark.parametrize("row", BERT_ROWS)
def test_a_row_with_bert_is_the_row_with_the_cloze_lm_but_for_the_lm_and_its_rate(
    recipes: Any, parse: Any, row: str
) -> None:
    without = row.removesuffix("_bert")
    for name in (row, without):
        recipes.succeed(f"debian_ende/{name}.sh", **NUMBERS)
    bert = f"{recipes.out}/bert.en/checkpoints/checkpoint_best.pt"
    expected = " ".join(recipes.command(without)).replace(CLOZE, bert).replace(f"/{without}/", f"/{row}/")
    rate = " --src-lm-lr-scale 0.1" if row == "src_ft_bert" else ""
    assert rate in (found := " ".join(recipes.command(row)))
    assert found.replace(rate, "") == expected
    trained = recipes.command("bert.en")
    assert trained[1] == f"{recipes.out}/data/documents.en"
    args = parse(trained, "bert_pretraining")
    assert (args.arch, args.criterion, args.decoder_layers, args.nsp_weight) == ("bert_lm", "bert_pretraining", 4, 1.0)


def test_rows_with_a_model_of_hugging_face_pretrain_it_and_read_its_pieces(recipes: Any, parse: Any) -> None:
    recipes.succeed("huggingface/src_ft.sh", BERT_LAYERS="3")
    calls, bert = recipes.calls(), f"{recipes.out}/bert"
    (pretraining,) = [call for call in calls if call[0] == "recipes/huggingface/pretrain_bert.py"]
    assert pretraining[pretraining.index("--out") + 1] == bert
    assert pretraining[pretraining.index("--layers") + 1] == "3"
    (prepared,) = [call for call in calls if call[0].endswith("data-prep/prepare.py")]
    assert prepared[prepared.index("--src-hf") + 1] == bert
    train, generate = (recipes.command("src_ft", step) for step in ("train", "generate"))
    text = [*("--bpe", "lmfusion", "--src-bpe", f"pieces:{recipes.out}/data/pieces.en.json")]
    text += ["--tgt-bpe", f"sentencepiece:{recipes.out}/data/spm.model", "--tgt-moses", "de"]
    for command in (train, generate):
        begin = command.index("--bpe")
        assert command[begin : begin + len(text)] == text
        assert not {"--tokenizer", "--sentencepiece-model"} & set(command)
    assert train[train.index("--src-lm") + 1] == bert
    check_combination(convert_namespace_to_omegaconf(parse(train)).model)


def test_a_model_one_has_already_is_not_pretrained(recipes: Any) -> None:
    recipes.succeed("huggingface/src_elmo.sh", SRC_LM="xlm-r")
    assert not [call for call in recipes.calls() if call[0].endswith("pretrain_bert.py")]
    assert "xlm-r" in recipes.command("src_elmo")
