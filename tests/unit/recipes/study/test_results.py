"""What is committed of a study's runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from study.results import ROOT, without_paths

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


def test_no_committed_result_names_a_folder_of_a_machine() -> None:
    files = [file for folder in ("recipes", "benchmarks") for file in (ROOT / folder).rglob("results/**/*.json")]
    assert len(files) > 50
    named = {str(file.relative_to(ROOT)): _ABSOLUTE.findall(file.read_text("utf-8")) for file in files}
    assert {file: paths for file, paths in named.items() if paths} == {}
