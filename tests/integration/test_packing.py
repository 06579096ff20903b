"""Plain text in and out of a trained checkpoint, an export and a packed file, by the commands a person gives."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion import InputError
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.commands import pack
from lmfusion.text import kit as kits

BEAM = ("--beam", 2, "--max-len-b", 10)
Saved = Callable[..., Path]


@pytest.fixture(scope="module")
def trained(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SRC-ELMO model of two updates with noise on its matrices, so that sentences differ in their translations."""
    out = tmp_path_factory.mktemp("packing")
    row = ("--arch", "src_elmo_tiny", "--src-lm", lm_files["src"], "--src-elmo-affine")
    commands.ok(*commands.training(out, 2, *row, *commands.text_flags))
    state = read_checkpoint(out / "checkpoint_last.pt")
    generator = torch.Generator().manual_seed(1)
    for tensor in state["model"].values():
        if tensor.is_floating_point() and tensor.dim() > 1:
            tensor.add_(torch.randn(tensor.shape, generator=generator), alpha=1.0)
    torch.save(state, out / "trained.pt")
    return out / "trained.pt"


@pytest.fixture(scope="module")
def changed(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Writes a copy of a model with entries replaced; None takes one out."""
    out = tmp_path_factory.mktemp("changed")

    def save(source: Path = trained, **entries: Any) -> Path:
        state = {**read_checkpoint(source), **entries}
        path = out / f"{len(list(out.iterdir()))}.pt"
        torch.save({name: value for name, value in state.items() if value is not None}, path)
        return path

    return save


@pytest.fixture(scope="module")
def packed(commands: Any, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as one file, in full precision."""
    path = tmp_path_factory.mktemp("packed") / "m.lmf"
    commands.ok("lmfusion", "pack", trained, "--out", path, "--full", "--licence", "CC0\nAll of it.")
    return path


@pytest.fixture(scope="module")
def text(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the test set."""
    lines = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()[:9]
    path = tmp_path_factory.mktemp("text") / "new.en"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def translations(trained: Path, text: Path) -> list[str]:
    """By Python."""
    model = lmfusion.load_model(trained)
    found: list[str] = model.translate(text.read_text(encoding="utf-8").splitlines(), beam=2, max_len_b=10)
    assert len(set(found)) > 3, "the model tells sentences apart"
    return found


def printed(commands: Any, *words: object) -> list[str]:
    """What ``lmfusion translate`` prints; what it logs stands before it."""
    output = commands.ok("lmfusion", "translate", *words, *BEAM)
    return [" ".join(line.split()) for line in output.splitlines() if not line.startswith(("INFO", "WARNING"))]


def interactive(commands: Any, model: Path, text: Path, *flags: object, data: Path | None = None) -> list[str]:
    """What fairseq-interactive prints of each line, detokenized, and the rest of its output."""
    output: str = commands.ok(*interactive_words(commands, model, text, *flags, data=data))
    return output.splitlines()


def interactive_words(commands: Any, model: Path, text: Path, *flags: object, data: Path | None = None) -> list[object]:
    """Its command line."""
    words = ["fairseq-interactive", data or commands.bitext, "--path", model, "--input", text, "-s", "en", "-t", "de"]
    return [*words, *BEAM, "--buffer-size", 16, "--batch-size", 16, "--user-dir", lmfusion.USER_DIR, "--cpu", *flags]


def detokenized(output: list[str]) -> list[str]:
    """The D lines in the order of the input."""
    found = [line.split("\t") for line in output if line.startswith("D-")]
    return [" ".join(cells[2].split()) for cells in sorted(found, key=lambda cells: int(cells[0][2:]))]


@pytest.mark.slow
def test_interactive_takes_bpe_and_tokenizer_from_the_checkpoint(
    commands: Any, trained: Path, packed: Path, text: Path, translations: list[str]
) -> None:
    given = interactive(commands, trained, text, *commands.text_flags)
    assert detokenized(given) == [" ".join(line.split()) for line in translations]
    for model in (trained, packed):
        alone = interactive(commands, model, text)
        assert detokenized(alone) == detokenized(given)
        assert any("sentencepiece" in line and "from the checkpoint" in line for line in alone)


@pytest.mark.slow
def test_interactive_as_a_module_takes_them_too(
    commands: Any, packed: Path, text: Path, translations: list[str]
) -> None:
    """``python -m fairseq_cli.interactive`` runs another main than the command does."""
    words = [
        "-m",
        "fairseq_cli.interactive",
        commands.bitext,
        "--path",
        packed,
        "--input",
        text,
        "-s",
        "en",
        "-t",
        "de",
    ]
    words += [*BEAM, "--buffer-size", 16, "--user-dir", lmfusion.USER_DIR, "--cpu"]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=True)
    assert detokenized(done.stdout.splitlines()) == [" ".join(line.split()) for line in translations]


@pytest.mark.slow
def test_interactive_does_not_encode_twice(commands: Any, trained: Path, packed: Path, tmp_path: Path) -> None:
    """Pieces with --remove-bpe give what they give with --bpe none; pieces alone are refused."""
    pieces = commands.prepared / "bpe" / "test.en"
    for model in (trained, packed):
        given = interactive(commands, model, pieces, "--tokenizer", "space", "--bpe", "none")
        joined = interactive(commands, model, pieces, "--remove-bpe", "sentencepiece")
        expected = [text.replace(" ", "").replace("▁", " ").strip() for text in detokenized(given)]
        assert detokenized(joined) == expected
        assert any(" " in text for text in expected)
    refused = commands.refused(*interactive_words(commands, trained, pieces))
    assert "▁" in refused
    assert "--bpe none" in refused


@pytest.mark.slow
def test_interactive_says_that_plain_text_needs_a_bpe_where_there_is_none(
    commands: Any, changed: Saved, text: Path
) -> None:
    output = interactive(commands, changed(text=None), text)
    told = [line for line in output if "plain text needs" in line and "--bpe" in line]
    assert len(told) == 1
    encoded = text.with_suffix(".bpe")
    encoded.write_text("▁A ▁library .\n", encoding="utf-8")
    assert not [line for line in interactive(commands, changed(text=None), encoded) if "plain text needs" in line]


@pytest.mark.slow
def test_translate_refuses_plain_text_without_a_bpe_and_takes_one_that_is_given(
    commands: Any, changed: Saved, trained: Path, text: Path, tmp_path: Path
) -> None:
    """As of a checkpoint trained without --bpe, or written by an earlier version whose files are gone."""
    cfg = read_checkpoint(trained)["cfg"]
    without = changed(text=None, cfg={**cfg, "bpe": None, "tokenizer": None})
    line = commands.refused("lmfusion", "translate", without, text)
    assert "--spm" in line
    spm = commands.prepared / "spm.model"
    assert len(printed(commands, without, text, "--spm", spm)) == 9
    moved = changed(text=None, cfg={**cfg, "bpe": None, "task": {**cfg["task"], "data": str(tmp_path / "gone")}})
    assert str(tmp_path / "gone") in commands.refused("lmfusion", "translate", moved, text, "--spm", spm)
    assert len(printed(commands, moved, text, "--spm", spm, "--data", commands.bitext)) == 9
    assert "--spm" in commands.refused("lmfusion", "pack", moved, "--out", tmp_path / "x.lmf")
    commands.ok("lmfusion", "pack", moved, "--out", tmp_path / "y.lmf", "--spm", spm, "--data", commands.bitext)
    assert read_checkpoint(tmp_path / "y.lmf")[kits.ENTRY]["bpe"]["_name"] == "sentencepiece"


@pytest.mark.slow
def test_pack_takes_from_given_files_what_a_checkpoint_lacks_and_refuses_others(
    commands: Any, changed: Saved, trained: Path, tmp_path: Path
) -> None:
    whole = read_checkpoint(trained)
    spm, other, kit = commands.prepared / "spm.model", tmp_path / "other.model", whole[kits.ENTRY]
    lacks_bpe = changed(
        text={**kit, "bpe": {}, "bpe_file": kits.to_tensor(b"")}, cfg={**whole["cfg"], "bpe": None, "tokenizer": None}
    )
    assert "--spm" in commands.refused("lmfusion", "pack", lacks_bpe, "--out", tmp_path / "x.lmf")
    commands.ok("lmfusion", "pack", lacks_bpe, "--out", tmp_path / "y.lmf", "--spm", spm)
    found = read_checkpoint(tmp_path / "y.lmf")[kits.ENTRY]
    assert torch.equal(found["bpe_file"], kit["bpe_file"])
    for name in ("languages", "tokenizer"):
        assert found[name] == kit[name]
    other.write_bytes(spm.read_bytes() + b" ")
    assert "other" in commands.refused("lmfusion", "pack", trained, "--out", tmp_path / "z.lmf", "--spm", other)
    commands.ok("lmfusion", "pack", trained, "--out", tmp_path / "z.lmf", "--spm", spm, "--data", commands.bitext)


def test_every_form_of_the_model_translates_the_same(
    commands: Any, trained: Path, packed: Path, text: Path, translations: list[str], tmp_path: Path
) -> None:
    commands.ok("lmfusion", "export", trained, "--out", tmp_path / "exported.pt")
    commands.ok("lmfusion", "pack", packed, "--out", tmp_path / "again.lmf", "--full")
    for model in (trained, packed, tmp_path / "exported.pt", tmp_path / "again.lmf"):
        assert printed(commands, model, text, "--batch-size", 4) == [" ".join(line.split()) for line in translations]


def test_a_packed_file_generates_as_its_checkpoint_does(commands: Any, trained: Path, packed: Path) -> None:
    both = [commands.ok(*commands.generation(model)) for model in (trained, packed)]
    hypotheses = [[line for line in output.splitlines() if line.startswith("H-")] for output in both]
    assert hypotheses[0] == hypotheses[1]
    assert len(hypotheses[0]) == 25


def test_half_precision_halves_the_file_and_translates(
    commands: Any, packed: Path, trained: Path, text: Path, tmp_path: Path
) -> None:
    commands.ok("lmfusion", "pack", trained, "--out", tmp_path / "half.lmf")
    weights = read_checkpoint(tmp_path / "half.lmf")["model"].values()
    assert {tensor.dtype for tensor in weights if tensor.is_floating_point()} == {torch.float16}
    assert len(printed(commands, tmp_path / "half.lmf", text)) == 9
    assert len(printed(commands, tmp_path / "half.lmf", text, "--int8")) == 9


def test_inspect_tells_what_a_packed_file_is_for(commands: Any, packed: Path, trained: Path) -> None:
    shown = commands.ok("lmfusion", "inspect", packed)
    for part in ("en to de", "sentencepiece", "moses", "CC0"):
        assert part in shown
    assert "All of it." not in shown, "its first line"
    card = commands.ok("lmfusion", "inspect", packed, "--card")
    for part in ("en to de", "src_elmo_tiny", "CC0", "All of it.", "400 pairs" if "400 pairs" in card else "Use"):
        assert part in card
    assert "pack" in commands.refused("lmfusion", "inspect", trained, "--card")


def test_what_is_no_translation_model_is_not_packed(commands: Any, lm_files: dict[str, Path], packed: Path) -> None:
    line = commands.refused("lmfusion", "pack", lm_files["src"], "--out", packed.with_name("lm.lmf"))
    assert str(lm_files["src"]) in line
    assert "--out" in commands.refused("lmfusion", "pack", packed, "--out", packed)
    assert "nowhere" in commands.refused("lmfusion", "pack", packed, "--out", packed.parent / "nowhere" / "m.lmf")


@pytest.mark.parametrize("mistyped", ["LICENCE-2.0", "text/COPYING", "my-licence.txt", "../cc.md"])
def test_a_licence_that_names_a_file_which_is_not_there_is_no_licence(
    commands: Any, packed: Path, tmp_path: Path, mistyped: str
) -> None:
    out = tmp_path / "m.lmf"
    assert mistyped in commands.refused("lmfusion", "pack", packed, "--out", out, "--licence", mistyped)
    assert not out.exists()


@pytest.mark.parametrize("name", ["CC-BY-4.0", "GPL-2.0+", "MIT/X11", "https://example.org/licence.txt", "See a.txt"])
def test_a_name_or_an_address_is_a_licence(name: str) -> None:
    assert pack._licence(name) == name


def hostile(packed: Path) -> dict[str, dict[str, Any]]:
    """Entries by what is wrong with them."""
    kit = read_checkpoint(packed)[kits.ENTRY]
    return {
        "a language that leads out": {kits.ENTRY: {**kit, "languages": ["../../en", "de"]}},
        "a BPE that is none": {kits.ENTRY: {**kit, "bpe_file": kits.to_tensor(b"\x00" * 99)}},
        "a BPE of another kind": {kits.ENTRY: {**kit, "bpe": {**kit["bpe"], "_name": "subword_nmt"}}},
        "a dictionary that is none": {kits.ENTRY: {**kit, "dictionaries": [kits.to_tensor(b"\xff\xfe a\n")] * 2}},
        "a dictionary of others": {kits.ENTRY: {**kit, "dictionaries": [kits.to_tensor(b"a 1\nb 1\n")] * 2}},
        "no dictionaries": {kits.ENTRY: {**kit, "dictionaries": []}},
        "three languages": {kits.ENTRY: {**kit, "languages": ["a", "b", "c"]}},
        "no bytes": {kits.ENTRY: {**kit, "bpe_file": [1, 2]}},
        "no entry": {kits.ENTRY: "text"},
    }


@pytest.mark.parametrize(
    "fault",
    [
        *("a language that leads out", "a BPE that is none", "a BPE of another kind", "a dictionary that is none"),
        *("a dictionary of others", "no dictionaries", "three languages", "no bytes", "no entry"),
    ],
)
def test_a_file_from_a_stranger_is_refused_in_one_line(changed: Saved, packed: Path, fault: str) -> None:
    path = changed(packed, **hostile(packed)[fault])
    with pytest.raises(InputError, match=path.name) as refused:
        lmfusion.load_model(path).translate(["A library."])
    assert "\n" not in str(refused.value)


@pytest.fixture
def start(packed: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts ``lmfusion translate`` on the packed file."""
    started = []

    def run(*words: object, **streams: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lmfusion.cli", "translate", str(packed), *map(str, (*BEAM, *words))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
        started.append(subprocess.Popen(command, env=environment, **streams))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def test_a_stream_is_answered_line_by_line_and_a_reader_may_leave(start: Any, text: Path, translations: Any) -> None:
    process = start(**PIPES)
    for line, expected in zip(text.read_bytes().splitlines(keepends=True)[:3], translations):
        process.stdin.write(line)
        process.stdin.flush()
        assert " ".join(process.stdout.readline().decode().split()) == " ".join(expected.split())
    process.stdout.close()
    process.stdin.write(text.read_bytes())
    process.stdin.flush()
    assert process.wait(60) == 0, "as of head"
    assert process.stderr.read() == b"", "though its input has not ended"


@pytest.mark.slow
def test_a_line_that_is_not_utf8_is_named_after_what_stands_before_it(start: Any, translations: list[str]) -> None:
    out, error = start(**PIPES).communicate(b"\xef\xbb\xbf\n\nA library.\r\ncaf\xe9\nA tool.\n", timeout=120)
    lines = out.decode().splitlines()
    assert (len(lines), lines[:2]) == (3, ["", ""])
    assert error.decode().count("\n") == 1
    assert "line 4" in error.decode()


@pytest.mark.slow
def test_a_pipe_may_stand_for_a_file(start: Any, text: Path, translations: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = start(tmp_path / "fifo", **PIPES)
    with subprocess.Popen(["cp", str(text), str(tmp_path / "fifo")]) as writer:
        out, _ = process.communicate(timeout=120)
        writer.kill()
    assert [" ".join(line.split()) for line in out.decode().splitlines()] == [" ".join(t.split()) for t in translations]


def test_what_is_typed_is_answered_before_the_next_prompt(start: Any, translations: list[str], text: Path) -> None:
    """On a terminal: a line, the same by the arrow key, an empty one, and Ctrl-D."""
    ours, theirs = pty.openpty()
    process = start(stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    sentence = text.read_bytes().splitlines()[0]

    def screen() -> str:
        """All up to the next prompt."""
        seen, end = b"", time.monotonic() + 120
        while not seen.endswith(b"> ") and time.monotonic() < end:
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 4096)
        return seen.decode()

    assert screen().endswith("> ")
    os.write(ours, sentence + b"\n")
    assert translations[0].split()[0] in screen()
    os.write(ours, b"\n")
    assert screen().split() == [">"]
    os.write(ours, b"\x04")
    assert process.wait(60) == 0
    os.close(ours)
