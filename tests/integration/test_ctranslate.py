"""Models in folders of CTranslate2 translate as they do in fairseq; those it cannot compute are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import lmfusion

pytest.importorskip("ctranslate2")
BEAM = ("--beam", 4, "--max-len-b", 40, "--nbest", 4, "--min-len", 0)
KINDS: dict[str, tuple[str, ...]] = {
    "baseline": ("--arch", "lmfusion_tiny"),
    "shared, post-norm": ("--arch", "transformer_iwslt_de_en", "--share-all-embeddings", "--activation-fn", "gelu"),
    "learned positions": (
        *("--arch", "lmfusion_tiny", "--encoder-learned-pos", "--decoder-learned-pos", "--layernorm-embedding"),
        *("--encoder-normalize-before", "--decoder-normalize-before"),
    ),
}
SMALL = ("--encoder-embed-dim", 32, "--decoder-embed-dim", 32, "--encoder-ffn-embed-dim", 48)


@pytest.fixture(scope="module")
def make(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Trains a model of a kind until its translations have an end."""

    def train(kind: str) -> Path:
        out = tmp_path_factory.mktemp(kind.split(",")[0].replace(" ", "-"))
        commands.ok(*commands.training(out, 80, *KINDS[kind], *SMALL, *commands.text_flags, "--lr", 0.01))
        return out / "checkpoint_last.pt"

    return train


def translations(commands: Any, model: Path, text: Path, *flags: object) -> list[list[str]]:
    found = commands.ok("lmfusion", "translate", model, text, *BEAM, *flags).splitlines()
    return [line.split("\t") for line in found if line.count("\t") == 2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_lists_of_best_translations_and_their_scores_are_the_same(
    commands: Any, make: Callable[[str], Path], kind: str, tmp_path: Path
) -> None:
    checkpoint, folder = make(kind), tmp_path / "fast"
    commands.ok("lmfusion", "export", checkpoint, "--ctranslate2", folder)
    text = tmp_path / "text"
    sentences = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()[:12]
    text.write_text("\n".join([*sentences, "", "a 漢 b"]) + "\n", encoding="utf-8")
    ours, theirs = (translations(commands, model, text) for model in (checkpoint, folder))
    assert len(ours) == len(theirs) == 13 * 4 + 1
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(commands.prepared / "spm.model"))
    # The two end in different ways what is cut at the most symbols.
    cut = {line[0] for line in [*ours, *theirs] if len(pieces.encode(line[2])) > 35}
    ours, theirs = ([line for line in found if line[0] not in cut] for found in (ours, theirs))
    assert len({line[0] for line in ours}) > 5
    assert len({line[2] for line in ours}) > 2
    best = [{line[0]: line[2] for line in reversed(found)} for found in (ours, theirs)]
    assert best[0] == best[1]
    assert [float(line[1]) for line in theirs] == pytest.approx([float(line[1]) for line in ours], abs=1e-3)
    lines = text.read_text(encoding="utf-8").splitlines()
    from lmfusion.inference.ctranslate import CTranslator

    assert len(CTranslator(folder, int8=True).translate(lines, beam=2)) == len(lines)


def test_what_it_cannot_compute_is_refused_and_nothing_is_written(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    row = ("--arch", "src_elmo_tiny", "--src-lm", lm_files["src"])
    commands.ok(*commands.training(tmp_path / "elmo", 1, *row, *commands.text_flags))
    fused, out = tmp_path / "elmo" / "checkpoint_last.pt", tmp_path / "out"
    assert "language model inside" in commands.refused("lmfusion", "export", fused, "--ctranslate2", out)
    assert "fairseq" not in commands.refused("lmfusion", "export", lm_files["src"], "--ctranslate2", out)
    assert not out.exists()


@pytest.mark.slow
def test_a_part_that_was_not_written_shows_in_the_probabilities(
    commands: Any, make: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmfusion.inference import ctranslate

    checkpoint = make("baseline")
    monkeypatch.setattr(ctranslate, "_ACTIVATIONS", {"relu": "GELU"})
    with pytest.raises(lmfusion.InputError, match="other probabilities"):
        ctranslate.export(checkpoint, tmp_path / "out")
    assert not any(tmp_path.iterdir())
    monkeypatch.undo()
    ctranslate.export(checkpoint, tmp_path / "out")
    (tmp_path / "out" / ctranslate.BPE).unlink()
    with pytest.raises(lmfusion.InputError, match=ctranslate.BPE):
        ctranslate.CTranslator(tmp_path / "out")
