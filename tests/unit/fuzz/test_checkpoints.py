"""Checkpoints of every format, damaged at random: refused in one line, or read as they were; nothing in them is run."""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from fairseq import checkpoint_utils

from lmfusion import cli
from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint import rewriting as checkpoints
from lmfusion.checkpoint.reading import read_checkpoint, read_file
from lmfusion.convert import Inputs, convert
from lmfusion.errors import InputError
from lmfusion.inspection import inspect_checkpoint
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.loading import load_lm

HERE = Path(__file__).parent


def neighbour(name: str, path: Path) -> Any:
    """A module of the tests."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


released = neighbour("fuzz_released", HERE.parent / "convert" / "make_released.py")
few, many = pytest.param(range(15), id="few"), pytest.param(range(15, 315), id="many", marks=pytest.mark.slow)


def plain(state: dict[str, Any]) -> Any:
    """A checkpoint in a form that can be compared."""
    weights = {name: (str(value.dtype), value.tolist()) for name, value in state["model"].items()}
    return weights, {name: str(value) for name, value in state.items() if name != "model"}


@pytest.fixture
def lm_path(make_cloze: Any, save_lm: Any) -> Path:
    """A cloze LM's checkpoint."""
    history = [{"num_updates": 7, "criterion_name": "x", "optimizer_name": "y", "lr_scheduler_state": {}}]
    extra = {"optimizer_history": history, "extra_state": {"train_iterator": {"epoch": 1}}}
    path: Path = save_lm(make_cloze(), change=lambda state: state.update(extra))
    return path


@pytest.fixture
def released_path(tmp_path: Path) -> Path:
    """A cloze LM in the released format, as saved in 2019, and its dictionary."""
    lines = "".join(f"src{number} {100 - number}\n" for number in range(20))
    (tmp_path / "dict.en.txt").write_text(lines, encoding="utf-8")
    weights = released.language_model(released.CLOZE, 24)
    state = {"args": Namespace(**released.CLOZE), "model": weights, "optimizer_history": [{"num_updates": 11}]}
    torch.save(state, tmp_path / "released.pt", _use_new_zipfile_serialization=False)
    return tmp_path / "released.pt"


@pytest.mark.parametrize("seeds", [few, many])
def test_damaged_language_model(lm_path: Path, fuzz: Any, seeds: range) -> None:
    whole = state_fingerprint(load_lm(lm_path))
    same = []
    refused = fuzz(lm_path, load_lm, seeds, lambda lm: same.append(state_fingerprint(lm)))
    assert set(same) <= {whole}  # what is not refused is what was saved
    assert refused > 0.8 * len(seeds)


@pytest.mark.parametrize("seeds", [few, many])
@pytest.mark.parametrize("read", [read_checkpoint, checkpoint_utils.load_checkpoint_to_cpu], ids=["ours", "fairseq's"])
def test_damaged_checkpoint_as_every_command_reads_it(lm_path: Path, fuzz: Any, read: Any, seeds: range) -> None:
    whole = plain(read(lm_path))

    def check(state: dict[str, Any]) -> None:
        assert plain(state) == whole

    def through_text(path: Path) -> Any:
        return read(str(path))

    assert fuzz(lm_path, through_text, seeds, check) > 0.8 * len(seeds)


@pytest.mark.parametrize("seeds", [few, many])
def test_damaged_frozen_language_model_beside_a_checkpoint(lm_path: Path, fuzz: Any, seeds: range) -> None:
    """As --store-lm-once writes it."""
    whole = torch.load(lm_path, weights_only=True)
    apart = frozen_file.externalize(whole, ["decoder."], lm_path.parent, read=read_file)
    torch.save(apart, lm_path)
    (file,) = lm_path.parent.glob("frozen_lm.*.pt")
    whole = plain(read_checkpoint(lm_path))

    def check(state: dict[str, Any]) -> None:
        assert plain(state) == whole

    assert fuzz(file, lambda _: read_checkpoint(lm_path), seeds, check) > 0.8 * len(seeds)


@pytest.mark.parametrize("seeds", [few, many])
def test_damaged_checkpoint_of_the_released_code(released_path: Path, fuzz: Any, seeds: range) -> None:
    """Its format has no check sums: damage to weights cannot be noticed, all else is refused."""
    dictionary = str(released_path.with_name("dict.en.txt"))

    def read(path: Path) -> Any:
        return convert(str(path), Inputs(dictionary=dictionary))

    names = set(read(released_path).model.state_dict())

    def check(converted: Any) -> None:
        assert set(converted.model.state_dict()) == names

    fuzz(released_path, read, seeds, check)


@pytest.mark.parametrize("seeds", [few, many])
@pytest.mark.parametrize(
    "read",
    [load_lm, inspect_checkpoint, read_checkpoint],
    ids=["load_lm", "inspect", "check"],
)
def test_values_of_wrong_types(
    lm_path: Path, attempt: Any, wrong_type: Any, read: Callable[[Path], Any], seeds: range
) -> None:
    state = torch.load(lm_path, weights_only=True)
    for seed in seeds:
        torch.save(wrong_type(state, seed), lm_path)
        try:
            found = attempt(read, lm_path)
        except BaseException:
            print(f"seed {seed}")
            raise
        if isinstance(found, PretrainedLM):
            assert found.symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
            assert all(torch.is_tensor(value) for value in found.state_dict().values())


@pytest.mark.parametrize("seeds", [few, many])
def test_values_of_wrong_types_in_the_released_format(
    released_path: Path, attempt: Any, wrong_type: Any, seeds: range
) -> None:
    state = torch.load(released_path, weights_only=False)
    dictionary = str(released_path.with_name("dict.en.txt"))
    for seed in seeds:
        changed = wrong_type({**state, "args": vars(state["args"])}, seed)
        if isinstance(changed.get("args"), dict):
            changed["args"] = Namespace(**{str(name): value for name, value in changed["args"].items()})
        torch.save(changed, released_path)
        try:
            attempt(lambda path: convert(str(path), Inputs(dictionary=dictionary)), released_path)
        except BaseException:
            print(f"seed {seed}")
            raise


def places(attack: Any) -> list[dict[str, Any]]:
    """An attack in every part of a checkpoint."""
    return [
        {"extra": attack}, {"model": {"a": attack}}, {"cfg": {"model": attack}}, {"args": attack},
        {"extra_state": {"train_iterator": attack}}, {"optimizer_history": [{"num_updates": attack}]},
        {"args": Namespace(arch=attack)}, {"frozen_lms": {"x": attack}}, {"last_optimizer_state": attack},
    ]  # fmt: skip


def test_nothing_in_a_checkpoint_is_run(lm_path: Path, attempt: Any, attacks: Any) -> None:
    victim, objects = attacks
    state, refused = torch.load(lm_path, weights_only=True), 0
    for number, attack in enumerate(objects):
        everywhere = [{**state, **place} for place in places(attack)]
        for content in everywhere if number == 0 else everywhere[:1]:
            for write in (_as_today, _as_in_2019, _as_plain_pickle):
                write(attack, content, lm_path)
                for read in (read_checkpoint, load_lm, checkpoint_utils.load_checkpoint_to_cpu):
                    refused += attempt(read, lm_path) is None
                    assert not victim.exists()
    assert refused == (9 + len(objects) - 1) * 3 * 3  # places of the first, one of the others; ways to write, to read


def _as_today(attack: Any, content: Any, path: Path) -> None:
    if not isinstance(attack, bytes):
        torch.save(content, path)
        return
    torch.save({"model": {}}, path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:  # with right check sums
        for name, old in entries.items():
            archive.writestr(name, attack if name.endswith("data.pkl") else old)


def _as_in_2019(attack: Any, content: Any, path: Path) -> None:
    torch.save(content if not isinstance(attack, bytes) else {}, path, _use_new_zipfile_serialization=False)
    if isinstance(attack, bytes):
        path.write_bytes(path.read_bytes()[:60] + attack)


def _as_plain_pickle(attack: Any, content: Any, path: Path) -> None:
    path.write_bytes(attack if isinstance(attack, bytes) else pickle.dumps(content, protocol=4))


def test_the_attacks_are_real(attacks: Any, tmp_path: Path) -> None:
    """Most of them make the file, if unpickled carelessly."""
    victim, objects = attacks
    successful = 0
    for attack in objects:
        with contextlib.suppress(OSError, TypeError, pickle.UnpicklingError):
            pickle.loads(attack if isinstance(attack, bytes) else pickle.dumps(attack))
        if victim.exists():
            successful += 1
            victim.rmdir() if victim.is_dir() else victim.unlink()
    assert successful >= 10


@pytest.mark.parametrize("size", [10**9, -5])
def test_sizes_that_would_take_all_memory(lm_path: Path, attempt: Any, size: int) -> None:
    state = torch.load(lm_path, weights_only=True)
    for name in ("decoder_layers", "decoder_embed_dim", "decoder_ffn_embed_dim", "max_target_positions"):
        changed = {**state, "cfg": {**state["cfg"], "model": {**state["cfg"]["model"], name: size}}}
        torch.save(changed, lm_path)
        assert attempt(load_lm, lm_path) is None
        if size > 0:
            assert attempt(checkpoint_utils.load_checkpoint_to_cpu, lm_path) is None


def test_commands_end_in_one_line(lm_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weight = torch.load(lm_path, weights_only=True)["model"]["decoder.join.q_proj.bias"]
    content = bytearray(lm_path.read_bytes())
    content[content.find(weight.numpy().tobytes())] ^= 1
    lm_path.write_bytes(content)
    out = str(tmp_path / "out.pt")
    for words in (["inspect", str(lm_path)], ["export", str(lm_path), "--out", out], ["average", *[str(lm_path)] * 2]):
        assert cli.main([*words, *(["--out", out] if words[0] == "average" else [])]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "lm.pt cannot be read as a checkpoint: it is truncated or damaged (the check sum of" in error
    with pytest.raises(InputError):
        checkpoints.average([lm_path, lm_path], out)
    assert not Path(out).exists()
