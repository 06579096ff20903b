"""Nothing is fetched, and nothing of this machine handed on, because a checkpoint names it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

import lmfusion
from lmfusion import cli
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.text.named_files import data_folders, refuse_addresses

PACKED = Path(__file__).resolve().parents[2] / "pretrained" / "en-de.lmf"
PLAIN = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}
SECRET = "-----BEGIN PRIVATE KEY-----\nmine alone\n"
FETCHED = [
    {"_name": "gpt2", "gpt2_encoder_json": "https://example.org/a.json", "gpt2_vocab_bpe": "https://example.org/b.bpe"},
    {"_name": "gpt2"},
    {"_name": "gpt2", "gpt2_encoder_json": None, "gpt2_vocab_bpe": "here.bpe"},
    {"_name": "gpt2", "gpt2_encoder_json": "here.json"},
    {"_name": "bert", "bpe_cased": False, "bpe_vocab_file": None},
    {**PLAIN, "sentencepiece_model": "http://example.org/a.model"},
    *({**PLAIN, "sentencepiece_model": f"{scheme}:bucket/a.model"} for scheme in ("s3", "http", "HTTPS")),
    {"_name": "hf_byte_bpe", "bpe_merges": "ftp://example.org/a", "bpe_vocab": "b"},
    "gpt2",
    [1],
]


@pytest.fixture(autouse=True)
def no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up of a name fails the test."""

    def refuse(*args: Any, **_: Any) -> NoReturn:
        pytest.fail(f"the net was asked for {args[:2]}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def changed(folder: Path, **sections: Any) -> Path:
    """The shipped model as a checkpoint that holds no text files, with other sections in its configuration."""
    state = read_checkpoint(PACKED)
    text = state.pop("text")
    for language, content in zip(text["languages"], text["dictionaries"]):
        (folder / f"dict.{language}.txt").write_bytes(content.numpy().tobytes())
    (folder / "spm.model").write_bytes(text["bpe_file"].numpy().tobytes())
    state["cfg"]["task"]["data"] = str(folder)
    state["cfg"] |= sections
    torch.save(state, folder / "changed.pt")
    return folder / "changed.pt"


@pytest.mark.parametrize("bpe", FETCHED, ids=str)
def test_a_bpe_that_would_be_fetched_is_refused(bpe: Any) -> None:
    with pytest.raises(InputError, match="its bpe"):
        refuse_addresses("bpe", bpe, {})


def test_a_file_of_this_machine_and_what_the_user_gives_are_taken() -> None:
    refuse_addresses("bpe", None, {})
    refuse_addresses("bpe", {**PLAIN, "sentencepiece_model": "/data/a b/spm.model"}, {})
    address = "https://example.org/a.model"
    named = {**PLAIN, "sentencepiece_model": address}
    refuse_addresses("bpe", named, {"sentencepiece_model": address})
    with pytest.raises(InputError, match="as sentencepiece_model"):  # the same, where the user gave another value
        refuse_addresses("bpe", named, {"sentencepiece_alpha": 0.1})


@pytest.mark.parametrize("bpe", FETCHED[:1] + FETCHED[4:6], ids=str)
def test_loading_a_model_fetches_nothing(tmp_path: Path, bpe: Any) -> None:
    with pytest.raises(InputError, match=r"changed\.pt: its bpe names .* nothing is fetched"):
        lmfusion.load_model(changed(tmp_path, bpe=bpe))


def test_the_same_model_with_its_file_translates(tmp_path: Path) -> None:
    path = changed(
        tmp_path, bpe={**PLAIN, "sentencepiece_alpha": None, "sentencepiece_model": str(tmp_path / "spm.model")}
    )
    text = ["A small server."]
    assert lmfusion.load_model(path).translate(text) == lmfusion.load_model(PACKED).translate(text)


@pytest.mark.parametrize("named", ["nothing else", "bpe", "dictionary"])
def test_no_other_file_of_this_machine_is_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    """A checkpoint from elsewhere names the files of its BPE and dictionaries."""
    folder, secret, out = tmp_path / "data", tmp_path / "key", tmp_path / "out.lmf"
    folder.mkdir()
    path = changed(folder, bpe={**PLAIN, "sentencepiece_model": str(folder / "spm.model")})
    secret.write_text(SECRET, encoding="utf-8")
    if named == "nothing else":
        assert cli.main(["pack", str(path), "--out", str(out)]) == 0
        assert out.exists()
        return
    file = folder / ("spm.model" if named == "bpe" else "dict.de.txt")
    file.unlink()
    file.symlink_to(secret)
    assert cli.main(["pack", str(path), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "none is packed" in error
    assert "mine alone" not in error
    assert not out.exists()


def test_languages_that_training_was_not_told_are_those_of_the_datas_names(tmp_path: Path) -> None:
    """As fairseq-train finds them where -s and -t are left out."""
    task = {"data": str(tmp_path), "source_lang": None, "target_lang": None}
    for language in ("en", "de"):
        (tmp_path / f"dict.{language}.txt").touch()
    with pytest.raises(InputError, match="does not say which languages"):
        data_folders(task, {})
    (tmp_path / "train.en-de.en.idx").touch()
    assert data_folders(task, {}) == str(tmp_path.resolve())
    (tmp_path / "dict.de.txt").unlink()
    with pytest.raises(InputError, match=r"dict\.de\.txt does not exist"):
        data_folders(task, {})
