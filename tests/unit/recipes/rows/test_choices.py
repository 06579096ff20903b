"""What is chosen on the validation set: the weight of an LM, the learning rate, and settings without the test set."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from row_groups import CAUSAL


def test_shallow_fusion_takes_the_weight_that_is_best_on_the_validation_set(recipes: Any) -> None:
    (recipes.out / "data" / "text" / "valid.de").write_text("one line\n", encoding="utf-8")
    bitext = recipes.out / "data" / "bitext-10000"
    bitext.mkdir()
    (bitext / "dict.de.txt").write_text("word 1\n", encoding="utf-8")
    scores = recipes.out / "tgt_shallow.valid" / "scores.json"
    scores.parent.mkdir()
    figures = {"weight-0.1": {"bleu": 9.5}, "weight-0.2": {"bleu": 10.1}, "weight-0.4": {"bleu": 9.9}}
    scores.write_text(json.dumps(figures), encoding="utf-8")
    recipes.answer("*scores.json*", f'exec {sys.executable} "$@"')
    recipes.succeed("debian_ende/tgt_shallow.sh", LM_WEIGHTS="0.1 0.2 0.4")
    for weight in ("0.1", "0.2", "0.4"):
        command = recipes.command("tgt_shallow.valid", f"weight-{weight}")
        assert command[-4:] == ["--lm-path", CAUSAL, "--lm-weight", weight]
        assert command[command.index("--gen-subset") + 1] == "valid"
    command = recipes.command("tgt_shallow", "generate")
    assert command[-4:] == ["--lm-path", CAUSAL, "--lm-weight", "0.2"]
    assert command[command.index("--gen-subset") + 1] == "test"
    assert command[command.index("--path") + 1] == f"{recipes.out}/baseline/checkpoints/checkpoint_best.pt"
    assert "dict.txt" not in {path.name for path in bitext.iterdir()}, "other runs recorded these files"


def test_whole_descriptions_have_the_learning_rate_of_the_lowest_loss_and_one_denoiser(recipes: Any) -> None:
    recipes.answer("*lowest_loss.py*", 'for word in "$@"; do :; done; echo "$word"; exit 0')
    recipes.succeed("debian_synopsis/whole.sh", ROWS="lead denoising", RATES="0.001 0.004", LM_DIM="64")
    low, high = (str(recipes.out / f"rate-{rate}") for rate in ("0.001", "0.004"))
    trained = [[f"{low}/denoiser", "train"], [f"{low}/denoising", "train"], [f"{high}/denoising", "train"]]
    expected = [[f"{low}/lead", "generate"], *trained, trained[-1], [f"{high}/denoising", "generate"]]
    assert recipes.steps() == expected
    for command in (call for call in recipes.calls() if call[2:4] == [f"{high}/denoising", "train"]):
        assert command[command.index("--finetune-from-model") + 1] == f"{low}/denoiser/checkpoints/checkpoint_best.pt"
        assert command[command.index("--lr") + 1] == "0.004"
        assert command[command.index("--max-source-positions") + 1] == "512"
    assert recipes.calls()[-1] == ["recipes/rates_table.py", str(recipes.out)]
    assert "no nowhere.sh" in recipes.run("debian_synopsis/whole.sh", ROWS="nowhere").stderr


def test_settings_are_chosen_without_the_test_set_and_prepared_data_and_states_can_be_shared(recipes: Any) -> None:
    shared = recipes.out / "shared"
    shutil.copytree(recipes.out / "data", shared)
    recipes.succeed("debian_ende/src_elmo.sh", TRAIN_ONLY="1", DATA_DIR=str(shared), SRC_LM_CACHE="states")
    command = recipes.command("src_elmo")
    assert f"{shared}/bitext-10000" in command
    assert command[-3:] == ["--src-lm-cache", "states", "--src-lm-cache-half"]
    assert not any("fairseq-generate" in call or "lmfusion.runs.hypotheses" in call for call in recipes.calls())
    assert not any(str(recipes.out / "data") in word for call in recipes.calls() for word in call)
