"""What is committed of a study's runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from study.plan import read
from study.results import CHOICES, ROOT, TRIES, Results, shortened, without_paths

from lmfusion.errors import InputError

# An absolute path of somebody's machine, as a JSON string or inside one
_ABSOLUTE = re.compile(r'(?<![\w.])/(?:home|root|tmp|work|mnt|Users)/[^\s"]*')


def test_a_run_of_another_clone_is_kept_without_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "study"
    monkeypatch.setenv("EARLIER", "/mnt/models")
    command = ["fairseq-train", f"{out}/data", "--user-dir", "/elsewhere/clone/lmfusion", "--src-lm"]
    run = json.dumps(
        {
            "command": [*command, "/elsewhere/clone/pretrained/en-cloze.pt"],
            "here": f"{ROOT}/pretrained",
            "lm": "/mnt/models/en-elmo.pt",
        }
    )
    kept = json.loads(without_paths(run, out))
    words = ["fairseq-train", "OUT/data", "--user-dir", "lmfusion", "--src-lm", "pretrained/en-cloze.pt"]
    assert kept == {"command": words, "here": "pretrained", "lm": "EARLIER/en-elmo.pt"}


@pytest.mark.parametrize(
    "text",
    [
        *('{"setting": {"dropout": 0.2', "[]", "{}", '{"setting": 3, "bits_per_character": 1}'),
        '{"row": "lstm", "size": 10000, "number": 1, "setting": {"speed": 1}, "bits_per_character": 1}',
        '{"row": "lstm", "size": 10000, "number": 1, "setting": {"dropout": 1, "representation": 0}}',
    ],
)
@pytest.mark.parametrize("name", [TRIES, "try-1"])
def test_a_damaged_configuration_is_named(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"{name} is damaged.*delete it"):
        Results(tmp_path).tries() if name == TRIES else read(str(path))


@pytest.mark.parametrize("text", ["[{", "3", "[3]", '[{"row": "lstm"}]', '[{"row": "lstm", "dropout": 0.1}]'])
def test_damaged_choices_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / CHOICES).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"{CHOICES} is damaged"):
        Results(tmp_path).chosen()


def test_of_a_training_log_every_fiftieth_update_is_kept() -> None:
    line = '2030-01-31 12:00:00 | INFO | train_inner | {"epoch": 1, "loss": "3.5", "num_updates": "%d"}'
    kept = shortened(line % update for update in (1, 50, 51, 100))
    assert kept.splitlines() == [line % 50, line % 100]


def test_no_committed_result_names_a_folder_of_a_machine() -> None:
    files = [file for folder in ("recipes", "benchmarks") for file in (ROOT / folder).rglob("results/**/*.json")]
    assert len(files) > 50
    named = {str(file.relative_to(ROOT)): _ABSOLUTE.findall(file.read_text("utf-8")) for file in files}
    assert {file: paths for file, paths in named.items() if paths} == {}
