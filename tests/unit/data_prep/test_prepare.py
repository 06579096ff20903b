"""prepare.py: the whole way from a corpus folder to fairseq's binary data, again, killed, and with bad input."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from lmfusion.text import binarize, prepare, textio

FLAGS = ["-s", "en", "-t", "de", "--bpe-size", "120", "--workers", "1"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would."""
    command = [sys.executable, prepare.__file__, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def prepare_in_process(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    """Run the command in this process: quicker, and its errors are exceptions."""
    monkeypatch.setattr(sys, "argv", ["prepare.py", *map(str, words)])
    prepare.Preparation(prepare.parse_args()).run()


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Time and size of every file, to see what a second run touched."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("prepare.json", ".lock"))
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


@pytest.mark.slow
def test_everything_is_made_once_and_only_what_is_missing_again(corpus_folder: Path, tmp_path: Path) -> None:
    for path in corpus_folder.iterdir():
        path.with_name(path.name + ".xz").write_bytes(lzma.compress(path.read_bytes()))
        path.unlink()
    out = tmp_path / "out"
    first = run(corpus_folder, "--out", out, "--bitext-lines", 100, *FLAGS)
    assert first.returncode == 0, first.stderr
    dictionary = Dictionary.load(str(out / "dict.txt"))
    assert len(dictionary) == 124
    train = data_utils.load_indexed_dataset(str(out / "bitext-100" / "train.en-de.en"), dictionary)
    encoded = list(textio.read_lines(out / "bpe" / "train.en"))
    assert dictionary.string(train[0]) == encoded[0]
    record = json.loads((out / "prepare.json").read_text())
    assert record["counts"]["bitext-100"]["train"]["kept"] == len(train)
    assert record["counts"]["lm.en"]["files"]["train"]["sentences"] == 400
    for name in ("bitext-100/dict.en.txt", "bitext-100/dict.de.txt", "lm.en/dict.txt", "lm.de/dict.txt"):
        assert (out / name).read_bytes() == (out / "dict.txt").read_bytes()

    before = tree(out)
    assert run(corpus_folder, "--out", out, "--bitext-lines", 100, *FLAGS).stdout == ""
    assert tree(out) == before
    (out / "tok" / "valid.de").unlink()
    assert run(corpus_folder, "--out", out, "--bitext-lines", 100, *FLAGS).stdout == "tok: valid.de\n"

    bigger = run(corpus_folder, "--out", out, "--bitext-lines", 200, *FLAGS)
    assert bigger.stdout.startswith("bitext-200: train")
    nested = data_utils.load_indexed_dataset(str(out / "bitext-200" / "train.en-de.en"), dictionary)
    assert all(nested[i].equal(train[i]) for i in range(len(train)))


def test_a_shipped_bpe_is_used_and_must_match_its_dictionary(
    corpus_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, shipped = tmp_path / "out", tmp_path / "again"
    monkeypatch.setattr(binarize, "fairseq_preprocess", lambda work, flags, log: {})
    prepare_in_process(monkeypatch, corpus_folder, "--out", out, *FLAGS)
    given = ["--spm", out / "spm.model", "--dict", out / "dict.txt", "--lm-langs", "en"]
    languages = ["-s", "en", "-t", "de"]
    prepare_in_process(monkeypatch, corpus_folder, "--out", shipped, *languages, *given)
    assert (shipped / "spm.model").read_bytes() == (out / "spm.model").read_bytes()
    assert not (shipped / "text" / "mono.train.de").exists()

    lines = (out / "dict.txt").read_text(encoding="utf-8").splitlines()
    other = tmp_path / "other.txt"
    other.write_text("\n".join([*lines[:5], "foreign 1", *lines[6:]]) + "\n", encoding="utf-8")
    given[3] = other
    with pytest.raises(textio.DataError, match=r"other\.txt, line 6: the dictionary has \['foreign'\]"):
        prepare_in_process(monkeypatch, corpus_folder, "--out", tmp_path / "third", *languages, *given)


def test_other_settings_in_the_same_folder_are_refused(
    corpus_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binarize, "fairseq_preprocess", lambda work, flags, log: {})
    out = tmp_path / "out"
    prepare_in_process(monkeypatch, corpus_folder, "--out", out, *FLAGS)
    with pytest.raises(textio.DataError, match=r"prepared with max_length = 250, now it is 9\. Choose another --out"):
        prepare_in_process(monkeypatch, corpus_folder, "--out", out, *FLAGS, "--max-length", 9)
    (corpus_folder / "test.en").write_text("other text\n" * 20, encoding="utf-8")
    with pytest.raises(textio.DataError, match=r"prepared with test\.en = "):
        prepare_in_process(monkeypatch, corpus_folder, "--out", out, *FLAGS)


def test_language_models_train_on_more_text_and_nothing_else_changes(
    corpus_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: dict[str, list[str]] = {}

    def keep(work: Path, flags: list[str], log: Path) -> dict[str, dict[str, float]]:
        texts.update({f"{work.name}/{path.name}": list(textio.read_lines(path)) for path in work.iterdir()})
        return {}

    monkeypatch.setattr(binarize, "fairseq_preprocess", keep)
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "mono.more.en").write_text("quux\n", encoding="utf-8")
    command = ["prepare.py", str(corpus_folder), *"-s en -t de --bpe-size 120 --workers 1 --lm-langs en".split()]
    made = []
    for flags in ([], ["--more-text", str(folder)]):
        monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / f"out{len(flags)}"), *flags])
        prepare.Preparation(prepare.parse_args()).run()
        made.append({name.replace(textio.PARTIAL, ""): text for name, text in texts.items()})
        texts.clear()
    added = {name: text[len(made[0][name]) :] for name, text in made[1].items()}
    assert "".join(added.pop("lm.en/train")).replace(" ", "") == "▁quux"
    assert made[1]["lm.en/train"][:-1] == made[0]["lm.en/train"]
    assert all(made[1][name] == made[0][name] for name in added)
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / "out0"), "--more-text", str(folder)])
    with pytest.raises(textio.DataError, match="prepared with more_text = False, now it is True"):
        prepare.Preparation(prepare.parse_args()).run()
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / "out3"), "--more-text", str(tmp_path)])
    with pytest.raises(textio.DataError, match=r"mono\.more\.en: no such file"):
        prepare.Preparation(prepare.parse_args()).run()


def cut_one_side(folder: Path) -> None:
    path = folder / "train.de"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-3]), encoding="utf-8")


def empty_test_line(folder: Path) -> None:
    path = folder / "test.de"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:6], " ", *lines[7:]]) + "\n", encoding="utf-8")


BAD_INPUT = {
    "missing": (lambda f: (f / "valid.de").unlink(), r"valid\.de: no such file .*The corpus folder needs train\.en"),
    "empty": (lambda f: (f / "mono.train.de").write_bytes(b""), r"mono\.train\.de: empty file"),
    "blank": (lambda f: (f / "mono.valid.en").write_bytes(b"\n \n"), r"mono\.valid\.en: empty file"),
    "cut": (cut_one_side, r"train\.en has 300 lines but .*train\.de has 297"),
    "one-sided": (empty_test_line, r"test\.de, line 7: empty\. Take the pair out"),
    "not UTF-8": (lambda f: (f / "test.en").write_bytes(b"ok\n\xff\xfe\n"), r"test\.en, line 2: not UTF-8"),
}


@pytest.mark.parametrize("kind", BAD_INPUT)
def test_bad_input_is_one_error_naming_the_file(
    corpus_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    spoil, message = BAD_INPUT[kind]
    spoil(corpus_folder)
    out = tmp_path / "out"
    with pytest.raises(textio.DataError, match=message):
        prepare_in_process(monkeypatch, corpus_folder, "--out", out, *FLAGS)
    assert not (out / "bitext-all").exists()
    assert not list(out.rglob("*.partial"))


@pytest.mark.slow
def test_a_failure_of_fairseq_preprocess_is_passed_on_with_its_log(corpus_folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(textio.DataError, match=r"fairseq-preprocess failed: .*absent.*\(all it said: .*log\)"):
        binarize.fairseq_preprocess(tmp_path / "work", ["--only-source", "--srcdict", "absent"], log)
    done = run(corpus_folder, "--out", tmp_path / "out", "-s", "en", "-t", "de")
    assert done.returncode == 1
    assert done.stderr.startswith("error: give either --bpe-size N")


@pytest.mark.parametrize(
    ("source", "target", "verdict"),
    [
        ("a b", "a b c", "kept"),
        ("a b", "a b c d", "dropped_ratio"),
        ("a b c d", "a b", "dropped_ratio"),
        ("a b c d e f", "a b c d e f", "dropped_long"),
        ("", "a", "dropped_empty"),
    ],
)
def test_pairs_are_dropped_for_a_reason(source: str, target: str, verdict: str) -> None:
    assert binarize.judge_pair(source, target, max_length=5, max_ratio=1.5) == verdict


@pytest.mark.slow
def test_a_module_in_the_folder_where_one_works_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a stranger's folder of data may hold one."""
    (tmp_path / "torch.py").write_text("raise ImportError('run')\n", encoding="utf-8")
    (tmp_path / "dict.txt").write_text("a 1\n", encoding="utf-8")
    (tmp_path / "train.en").write_text("a a\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    flags = ["--only-source", "-s", "en", "--srcdict", "dict.txt", "--trainpref", "train", "--workers", "1"]
    binarize.fairseq_preprocess(tmp_path / "work", flags, tmp_path / "log")
    assert (tmp_path / "work" / "train.en-None.en.bin").is_file()
    begun = f"set -e; OUT=runs; . {Path(__file__).parents[3]}/recipes/_common.sh; begin; echo $USER_DIR"
    done = subprocess.run(["bash", "-c", begun], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("lmfusion")
