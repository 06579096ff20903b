"""Sentence tasks through the real commands: training, resuming, validating, predicting, and what is refused."""

from __future__ import annotations

import json
import lzma
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import lmfusion

ROOT = Path(__file__).parents[2]
EMBEDDED = ROOT / "data-prep" / "debian" / "sentences"
SIZES = {"train": 41, "valid": 21}
TASKS = ("section", "synopsis", "similarity")
USER = ("--user-dir", lmfusion.USER_DIR, "--cpu", "--task", "lmfusion_sentences")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rows of the embedded sentence tasks."""
    folder = tmp_path_factory.mktemp("tasks")
    for task in TASKS:
        for split, size in SIZES.items():
            with lzma.open(EMBEDDED / f"{task}-{split}.tsv.xz", "rt", encoding="utf-8") as stream:
                (folder / f"{task}-{split}.tsv").write_text("".join(islice(stream, size)), encoding="utf-8")
    return folder


def places(tasks: Path, *names: str) -> str:
    return ":".join(str(tasks / name) for name in names or TASKS)


def training(commands: Any, lm: Path, data: str, out: Path, updates: int, *flags: object) -> list[object]:
    words: list[object] = ["fairseq-train", data, *USER, "--arch", "lmfusion_heads", "--criterion", "sentence_tasks"]
    words += ["--src-lm", lm, "--optimizer", "adamax", "--lr", 0.001, "--batch-size", 4, "--max-update", updates]
    words += ["--save-dir", out, "--num-workers", 0, "--log-format", "json", "--no-epoch-checkpoints", "--seed", 1]
    return [
        *words,
        "--best-checkpoint-metric",
        "average",
        "--maximize-best-checkpoint-metric",
        *commands.text_flags,
        *flags,
    ]


JOINT = ("--schedule", "joint", "--gradients", "pcgrad", "--task-pairs", "synopsis=uv_diff,similarity=cos")
SMART = ("--smart-weight", 1, "--smart-epsilon", 0.01, "--bregman-weight", 1)


@pytest.mark.slow
def test_several_tasks_train_resume_validate_and_predict(
    commands: Any, lm_files: dict[str, Path], tasks: Path, tmp_path: Path
) -> None:
    """After the LM's own file and its BPE are gone."""
    lm, out = tmp_path / "lm.pt", tmp_path / "run"
    lm.write_bytes(lm_files["src"].read_bytes())
    flags = ["--src-fusion", "finetune", *JOINT, *SMART, "--update-freq", 2]
    first = commands.ok(*training(commands, lm, places(tasks), out, 2, *flags))
    assert "text 'sentence', label 'label' (class)" in first
    assert "text 'sentence1' and 'sentence2', label 'similarity' (score)" in first
    lm.unlink()
    again = commands.ok(*training(commands, lm, places(tasks), out, 4, *flags))
    assert re.search(r'"valid_num_updates": "4"', again)
    assert {"section_accuracy", "synopsis_f1", "similarity_r", "average"} <= set(re.findall(r'"valid_(\w+)"', again))
    checkpoint = out / "checkpoint_last.pt"
    words = ["fairseq-validate", places(tasks), *USER, "--path", checkpoint, "--valid-subset", "valid"]
    validated = commands.ok(*words, "--batch-size", 7)
    accuracy = re.findall(r"section_accuracy ([\d.]+)", validated)[-1]
    words[1] = places(tasks, "section")
    assert f"section_accuracy {accuracy} " in commands.ok(*words)
    made = commands.ok("lmfusion", "predict", checkpoint, "--task", "section", "--input", tasks / "section-valid.tsv")
    rows = [line.split("\t") for line in made.splitlines() if line.count("\t") > 2]
    assert len(rows) == SIZES["valid"]
    names = rows[0][1:]
    for row in rows[1:]:
        values = [float(value) for value in row[1:]]
        assert sum(values) == pytest.approx(1, abs=1e-3)
        assert row[0] == names[values.index(max(values))]
    assert float(re.findall(r"accuracy ([\d.]+)", made)[-1]) == pytest.approx(float(accuracy), abs=1e-4)
    plain = tmp_path / "pairs.txt"
    plain.write_text("a library\ta library for music\n", encoding="utf-8")
    scored = commands.ok(
        "lmfusion", "predict", out, "--task", "similarity", "--input", plain, "--output", tmp_path / "o"
    )
    assert "plain lines; 1 examples" in scored
    assert 0 <= float((tmp_path / "o").read_text(encoding="utf-8").splitlines()[1]) <= 5


def test_one_task_on_a_frozen_model(commands: Any, lm_files: dict[str, Path], tasks: Path, tmp_path: Path) -> None:
    flags = ("--src-fusion", "elmo", "--task-batches", "section=5", "--batches-per-epoch", 3, "--max-epoch", 1)
    made = commands.ok(*training(commands, lm_files["src"], places(tasks, "section"), tmp_path, 100, *flags))
    assert '"train_num_updates": "3"' in made
    commands.ok("lmfusion", "predict", tmp_path, "--input", tasks / "section-valid.tsv")
    shown = commands.ok("lmfusion", "inspect", tmp_path / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert "section (class)" in found["kind"]
    (lm,) = found["language_models"]
    assert (lm["kind"], lm["frozen"], lm["parameters"]) == ("cloze language model", True, found["frozen"])
    assert sum(found["mixes"][0]["shares"].values()) == pytest.approx(1)
    assert "lmfusion predict" in commands.run("lmfusion", "translate", tmp_path, tasks / "section-valid.tsv").output


@pytest.mark.parametrize(
    ("names", "flags", "message"),
    [
        (["section"], ["--gradients", "pcgrad"], "--schedule joint"),
        (["section"], ["--task-pairs", "synopsis=uv"], "there is no task 'synopsis'"),
        (["synopsis"], ["--task-pairs", "synopsis=xor"], "--task-pairs synopsis=xor"),
        (["section"], ["--task-pairs", "section=uv"], "single sentences"),
        (["nothing"], [], "has no data for train"),
        (["section"], ["--criterion", "cross_entropy"], "--criterion sentence_tasks"),
    ],
)
def test_mistakes_end_in_one_line(
    commands: Any, lm_files: dict[str, Path], tasks: Path, tmp_path: Path, names: Any, flags: Any, message: str
) -> None:
    words = training(commands, lm_files["src"], places(tasks, *names), tmp_path, 1, "--src-fusion", "finetune", *flags)
    assert message in commands.refused(*words)


def test_a_row_that_is_wrong_is_named(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\nfine\tgood\nbad\tbad\n", encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nfine\tgood\nwell\tugly\n", encoding="utf-8")
    words = training(commands, lm_files["src"], f"mood={tmp_path}", tmp_path / "run", 1, "--src-fusion", "finetune")
    assert "dev.tsv, line 3: the label 'ugly' is none of the classes bad, good" in commands.refused(*words)
    made = commands.run("lmfusion", "predict", lm_files["src"], "--input", tmp_path / "dev.tsv")
    assert made.status == 2
    assert "has no heads" in made.output
