"""The real commands, in the order a person gives them, on a slice of the embedded corpus for a few updates.

preprocess -> cloze and causal LM: train, resume, evaluate -> SRC-ELMO + SHDEMB: train, resume, generate, and all of it
again without the LM's file -> score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

import pytest

import lmfusion

USER = ("--user-dir", lmfusion.USER_DIR, "--cpu")
ADAM = ("--optimizer", "adam", "--lr", "0.01", "--num-workers", "0", "--seed", "1", "--log-format", "json")
LM_TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", "256")
LM_SIZE = ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2)
LM_SIZE += ("--decoder-attention-heads", 2, "--share-decoder-input-output-embed")  # type: ignore[assignment]
LM_KINDS = {
    "cloze": ("lm.en", ("--self-target",), "bi_transformer_lm"),
    "causal": ("lm.de", (), "uni_transformer_lm"),
}
TEXT = ("--tokenizer", "moses", "--moses-no-dash-splits", "--moses-no-escape", "--bpe", "sentencepiece")
PERPLEXITY = re.compile(r"Perplexity: ([\d.]+)")
VALID_PERPLEXITY = re.compile(r'"valid_ppl": "([\d.]+)"')

Run = Callable[..., object]


def train(run_command: Run, data: Path, out: Path, updates: int, flags: Sequence[object]) -> str:
    """fairseq-train up to `updates`; called again with more, it resumes. Returns its output."""
    done = run_command(
        "fairseq-train", data, "--save-dir", out, "--max-update", updates, "--max-tokens", 2000, *USER, *ADAM, *flags
    )
    assert done.status == 0, done.output[-3000:]
    return done.output


def run(run_command: Run, *words: object) -> str:
    done = run_command(*words)
    assert done.status == 0, done.output[-3000:]
    return done.output


@pytest.fixture(scope="module")
def lms(prepared: Path, run_command: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both language models, trained for four updates in two halves."""
    trained = {}
    for kind, (data, targets, arch) in LM_KINDS.items():
        out = tmp_path_factory.mktemp(kind)
        flags = [*LM_TASK, *targets, "--arch", arch, *LM_SIZE]
        first = train(run_command, prepared / data, out, 2, flags)
        assert "Loaded checkpoint" not in first
        second = train(run_command, prepared / data, out, 4, flags)
        assert "Loaded checkpoint" in second
        assert "@ 2 updates" in second
        trained[kind] = out / "checkpoint_last.pt"
    return trained


@pytest.mark.slow
@pytest.mark.parametrize("kind", LM_KINDS)
def test_both_ways_of_evaluating_a_language_model_agree(
    kind: str, lms: dict[str, Path], prepared: Path, run_command: Run
) -> None:
    data, targets, _ = LM_KINDS[kind]
    flags = [*LM_TASK, *targets, "--path", lms[kind], *USER, "--max-tokens", 2000]
    evaluated = run(run_command, "fairseq-eval-lm", prepared / data, "--gen-subset", "valid", *flags)
    validated = run(
        run_command, "fairseq-validate", prepared / data, "--valid-subset", "valid", "--log-format", "json", *flags
    )
    perplexity = float(PERPLEXITY.search(evaluated)[1])  # type: ignore[index]
    assert 1 < perplexity < 2000
    assert float(VALID_PERPLEXITY.search(validated)[1]) == pytest.approx(perplexity, rel=0.02)  # type: ignore[index]


def test_a_fused_model_trains_resumes_and_outlives_its_language_model(
    lms: dict[str, Path], prepared: Path, run_command: Run, tmp_path: Path
) -> None:
    lm = tmp_path / "lm.pt"
    lm.write_bytes(lms["cloze"].read_bytes())
    data, out = prepared / "bitext-400", tmp_path / "run"
    text = [*TEXT, "--sentencepiece-model", prepared / "spm.model"]
    flags = ["-s", "en", "-t", "de", "--arch", "src_elmo_tiny", "--src-lm", lm, "--src-elmo-dropout", 0.2]
    flags += ["--src-elmo-affine", "--share-decoder-input-output-embed", "--criterion", "label_smoothed_cross_entropy"]
    train(run_command, data, out, 2, [*flags, *text])
    generate = ["fairseq-generate", data, "-s", "en", "-t", "de", "--path", out / "checkpoint_last.pt", *text, *USER]
    generate += ["--gen-subset", "test", "--beam", 2, "--max-len-b", 10, "--batch-size", 16]
    with_lm = run(run_command, *generate)

    lm.unlink()
    assert hypotheses(run(run_command, *generate)) == hypotheses(with_lm)
    resumed = train(run_command, data, out, 4, [*flags, *text])
    assert "@ 2 updates" in resumed

    log = tmp_path / "generate.log"
    # After four updates beam search repeats one syllable; sampled words look like text to the scorer.
    log.write_text(run(run_command, *generate, "--sampling", "--beam", 1), encoding="utf-8")
    reference = prepared / "text" / "test.de"
    scored = run(run_command, "lmfusion", "score", "bleu", "--generate", log, "--ref", reference, "--json")
    score = json.loads(scored[scored.index("{") :])
    assert 0 <= score["bleu"] <= 100
    assert score["sentences"] == len(reference.read_text(encoding="utf-8").splitlines())
    inspected = run(run_command, "lmfusion", "inspect", out / "checkpoint_last.pt", "--json")
    assert json.loads(inspected[inspected.index("{") :])["mixes"][0]["side"] == "source"


def hypotheses(output: str) -> list[str]:
    """The lines of fairseq-generate with hypotheses and their scores, in order."""
    lines = [line for line in output.splitlines() if line.startswith(("H-", "D-", "P-"))]
    assert len(lines) == 3 * 25
    return sorted(lines)
