"""What ``load_lm`` refuses, and what it says: every file a user may give by mistake or in bad faith."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint import reading
from lmfusion.errors import InputError
from lmfusion.lm.loading import build, load_lm


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.pt does not exist: give the path of a checkpoint"):
        load_lm(tmp_path / "nowhere.pt")


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not a checkpoint file"):
        load_lm(tmp_path)


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    make_cloze: Any, save_lm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_lm(make_cloze())

    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(reading, "other_kind", refuse)  # the superuser may read everything
    with pytest.raises(InputError, match=r"lm\.pt may not be read \(Permission denied\)"):
        load_lm(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_truncated_file(make_cloze: Any, save_lm: Any, part: float) -> None:
    path = save_lm(make_cloze())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(InputError, match=r"lm.pt (cannot be read as|is not) a checkpoint.*damaged"):
        load_lm(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 400, b"Das ist ein Satz.\n" * 9, b"PK\x03\x04 but no zip"],
    ids=["empty", "zeros", "text", "broken zip"],
)
def test_file_that_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thing.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"thing\.pt (cannot be read as|is not) a checkpoint"):
        load_lm(path)


SAID = {
    b"": "it is empty",
    b"Das ist ein Satz.\n" * 9: "a text file that begins with 'Das ist ein Satz.'",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n": "a text file that begins with 'version https://git",
    bytes(400): "it begins with the bytes 00 00 00",
    b"\x80\x02}q\x00h\x65.": r"damaged \(KeyError 101\)",
}


@pytest.mark.parametrize(("content", "said"), SAID.items(), ids=SAID.values())
def test_what_a_file_is_instead_of_a_checkpoint_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "thing.pt").write_bytes(content)
    with pytest.raises(InputError, match=rf"thing\.pt .*{said}"):
        load_lm(tmp_path / "thing.pt")


@pytest.mark.parametrize("state", [[1, 2], {"weights": {}}, {"model": None}], ids=str)
def test_saved_object_that_is_no_fairseq_checkpoint(tmp_path: Path, state: Any) -> None:
    torch.save(state, tmp_path / "thing.pt")
    with pytest.raises(InputError, match="not a fairseq checkpoint: it has no model weights"):
        load_lm(tmp_path / "thing.pt")


class CreatesFile:
    """Unpickled without care, it creates the file it names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("plain_pickle", [False, True], ids=["torch.save", "pickle.dump"])
def test_malicious_pickle_is_not_executed(make_cloze: Any, save_lm: Any, tmp_path: Path, plain_pickle: bool) -> None:
    victim = tmp_path / "executed"
    path = save_lm(make_cloze(), change=lambda state: state.update(extra=CreatesFile(victim)))
    if plain_pickle:
        path.write_bytes(pickle.dumps({"model": CreatesFile(victim)}, protocol=2))
    with pytest.raises(InputError, match=r"was not loaded: it asks to run .*Nothing of it was executed"):
        load_lm(path)
    assert not victim.exists()
    # The attack is a real one: careless loading does execute it.
    torch.load(path, weights_only=False) if not plain_pickle else pickle.loads(path.read_bytes())
    assert victim.exists()


def test_sequence_to_sequence_checkpoint(tmp_path: Path) -> None:
    model = {"_name": "transformer_lmfusion", "encoder_layers": 6, "decoder_layers": 6}
    torch.save({"cfg": {"model": model}, "model": {}}, tmp_path / "seq2seq.pt")
    with pytest.raises(InputError, match="holds transformer_lmfusion, where a pretrained language model"):
        load_lm(tmp_path / "seq2seq.pt")
    with pytest.raises(InputError, match="load_model"):
        load_lm(tmp_path / "seq2seq.pt")
    torch.save(
        {"cfg": {"model": {"_name": "lmfusion_heads", "heads_config": "[]"}}, "model": {}}, tmp_path / "heads.pt"
    )
    with pytest.raises(InputError, match="lmfusion predict"):
        load_lm(tmp_path / "heads.pt")


def test_another_language_model(tmp_path: Path) -> None:
    torch.save({"cfg": {"model": {"_name": "transformer_lm"}}, "model": {}}, tmp_path / "gpt.pt")
    with pytest.raises(InputError, match=r"holds transformer_lm, .*causal, cloze"):
        load_lm(tmp_path / "gpt.pt")


def test_checkpoint_of_the_released_code(tmp_path: Path) -> None:
    from argparse import Namespace

    torch.save({"args": Namespace(arch="bi_transformer_lm_big"), "model": {}}, tmp_path / "old.pt")
    with pytest.raises(InputError, match=r"no model configuration.*bring it over with `lmfusion convert`"):
        load_lm(tmp_path / "old.pt")


def test_file_without_its_dictionary(make_cloze: Any, save_lm: Any) -> None:
    path = save_lm(make_cloze(), change=lambda state: state["model"].pop("decoder.symbol_table.codes"))
    with pytest.raises(InputError, match="no dictionary in it"):
        load_lm(path)


def test_all_wrong_weights_are_listed_by_name(make_cloze: Any, save_lm: Any) -> None:
    def spoil(state: dict[str, Any]) -> None:
        weights = state["model"]
        del weights["decoder.join.q_proj.bias"], weights["decoder.forward_layers.0.ffn.fc1.weight"]
        weights["decoder.surplus"] = torch.zeros(2)
        weights["decoder.join.out_proj.bias"] = torch.zeros(3)

    path = save_lm(make_cloze(), change=spoil)
    with pytest.raises(InputError) as caught:
        load_lm(path)
    message = str(caught.value)
    assert "missing: forward_layers.0.ffn.fc1.weight, join.q_proj.bias;" in message
    assert "not expected: surplus;" in message
    assert "of another shape: join.out_proj.bias (3,) instead of (16,)." in message


def test_weights_of_another_variant(make_cloze: Any, save_lm: Any) -> None:
    path = save_lm(make_cloze(), change=lambda state: state["cfg"]["model"].update(no_extra_kv=True))
    with pytest.raises(
        InputError, match=r"not expected: backward_layers.0.self_attn.bias_k, backward_layers.0.self_attn"
    ):
        load_lm(path)


def test_unknown_family(dictionary: Any) -> None:
    with pytest.raises(InputError, match=r"family 'lstm'; .* causal, cloze"):
        build({"family": "lstm"}, dictionary.symbols)
