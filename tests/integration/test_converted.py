"""Converted checkpoints of the released format in fairseq's own commands, against what they should say.

The expected figures come from the independent calculation of tests/unit/convert on the released format's weights.
"""

from __future__ import annotations

import importlib.util
import math
import random
import re
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import lmfusion

UNIT = Path(__file__).parents[1] / "unit" / "convert"
USER_DIR = ["--user-dir", lmfusion.USER_DIR, "--cpu"]
WORDS = {"en": 20, "de": 17}
EOS = 2


def load(name: str) -> ModuleType:
    """A helper of the unit tests."""
    spec = importlib.util.spec_from_file_location(f"convert_{name}", UNIT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make, reference = load("make_released"), load("reference")
Sentences = dict[str, list[list[int]]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, run_command: Any) -> tuple[Path, Sentences]:
    """Six binarized pairs, their English alone as text for a language model, and their indices, </s> included."""
    folder, choose = tmp_path_factory.mktemp("converted"), random.Random(5)
    sentences: Sentences = {}
    for lang, count in WORDS.items():
        lines = [[choose.randrange(count) for _ in range(choose.randint(2, 8))] for _ in range(6)]
        text = "\n".join(" ".join(f"{lang}{word}" for word in line) for line in lines)
        (folder / f"test.{lang}").write_text(f"{text}\n", encoding="utf-8")
        dictionary = "".join(f"{lang}{word} 1\n" for word in range(count))
        (folder / f"dict.{lang}.txt").write_text(dictionary, encoding="utf-8")
        sentences[lang] = [[word + 4 for word in line] + [EOS] for line in lines]
    dictionaries = ["--srcdict", folder / "dict.en.txt"]
    common = ["fairseq-preprocess", "--testpref", folder / "test", "--workers", "1"]
    pairs = ["-s", "en", "-t", "de", *dictionaries, "--tgtdict", folder / "dict.de.txt", "--destdir", folder / "pairs"]
    assert run_command(*common, *pairs).status == 0
    text = ["fairseq-preprocess", "--testpref", folder / "test.en", "--only-source", *dictionaries]
    assert run_command(*text, "--destdir", folder / "text", "--workers", "1").status == 0
    return folder, sentences


def convert(run_command: Any, folder: Path, weights: Any, args: dict[str, Any], *flags: object) -> Path:
    """Save in the released format and convert by the command."""
    torch.save({"args": Namespace(**args), "model": weights}, folder / "released.pt")
    done = run_command("lmfusion", "convert", folder / "released.pt", "--out", folder / "converted.pt", *flags)
    assert done.status == 0, done.output
    return folder / "converted.pt"


@pytest.mark.slow
@pytest.mark.parametrize("cloze", [True, False], ids=["cloze", "causal"])
def test_perplexity(data: Any, run_command: Any, cloze: bool) -> None:
    """The cloze LM sees ``</s> w1 ... wn </s>`` and predicts each of these, the causal LM the next of each."""
    folder, sentences = data
    args = make.CLOZE if cloze else make.CAUSAL
    weights = make.language_model(args, WORDS["en"] + 4)
    path = convert(run_command, folder, weights, args, "--dict", folder / "dict.en.txt")
    w, losses = reference.double(weights), []
    for sentence in ([EOS, *line] for line in sentences["en"]):
        tokens, targets = (sentence, sentence) if cloze else (sentence[:-1], sentence[1:])
        state = reference.language_model(w, "decoder.", args, tokens)[1][0]
        logits = reference.softmax_input(w, "decoder.", args, state)
        losses += [-logits[place].log_softmax(0)[word].item() for place, word in enumerate(targets)]
    flags = ["--task", "language_modeling", "--sample-break-mode", "eos", *(["--self-target"] if cloze else [])]
    done = run_command("fairseq-eval-lm", folder / "text", "--path", path, "--gen-subset", "test", *flags, *USER_DIR)
    assert done.status == 0, done.output
    found = re.search(r"Loss \(base 2\): ([\d.]+), Perplexity", done.output)
    assert found is not None
    assert float(found[1]) == pytest.approx(sum(losses) / len(losses) / math.log(2), abs=2e-4)


CELLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "src elmo, tgt bilm": (
        {"encoder_embed_path": "elmo:x", "decoder_embed_path": "bilm:x", "elmo_affine": True},
        {"src": make.CLOZE, "tgt": make.CAUSAL},
    ),
    "tgt elmo with a cloze LM": ({"decoder_embed_path": "elmo:x"}, {"tgt": make.CLOZE}),
    "plain": ({"share_decoder_input_output_embed": True}, {}),
}


@pytest.mark.parametrize(("flags", "lms"), CELLS.values(), ids=CELLS.keys())
def test_greedy_translations_and_their_scores(data: Any, run_command: Any, flags: Any, lms: Any) -> None:
    """Step by step, with a cache where the LM has one; what a cloze LM said of a word it does not take back."""
    folder, sentences = data
    args = {**make.SEQ2SEQ, **flags}
    weights = make.seq2seq(args, lms, {"src": WORDS["en"] + 4, "tgt": WORDS["de"] + 4})
    dictionaries = ["--src-dict", folder / "dict.en.txt", "--tgt-dict", folder / "dict.de.txt"]
    given = []
    for side, lm in lms.items():
        torch.save({"args": Namespace(**lm), "model": {}}, folder / f"{side}.pt")
        given += [f"--{side}-lm", folder / f"{side}.pt"]
    path = convert(run_command, folder, weights, args, *dictionaries, *given)
    flags = ["--beam", "1", "--max-len-b", "6", "--gen-subset", "test", "-s", "en", "-t", "de", "--batch-size", "3"]
    done = run_command("fairseq-generate", folder / "pairs", "--path", path, *flags, *USER_DIR)
    assert done.status == 0, done.output
    printed = dict(re.findall(r"^([HP]-\d+)\t(.*)$", done.output, flags=re.MULTILINE))
    assert len(printed) == 2 * len(sentences["en"])
    for number, source in enumerate(sentences["en"]):
        words, scores = greedy(weights, args, lms, source, longest=6)
        text = " ".join("<unk>" if word == 3 else f"de{word - 4}" for word in words if word > 2)
        assert printed[f"H-{number}"].split("\t")[1] == text
        found = [float(score) for score in printed[f"P-{number}"].split()]
        assert found == pytest.approx(scores, abs=2e-4)


def greedy(weights: Any, args: Any, lms: Any, source: list[int], longest: int) -> tuple[list[int], list[float]]:
    """The likeliest word again and again, as fairseq allows: no <pad>, at least one word, </s> at the latest."""
    prefix, scores = [EOS], []
    while len(prefix) == 1 or prefix[-1] != EOS:
        logits = reference.seq2seq(weights, args, lms, source, prefix, step_by_step=True)[1][-1]
        logprobs = logits.log_softmax(0) / math.log(2)
        allowed = [i for i in range(len(logprobs)) if i != 1 and (i != EOS or len(prefix) > 1)]
        word = EOS if len(prefix) > longest else max(allowed, key=logprobs.__getitem__)
        prefix.append(word)
        scores.append(logprobs[word].item())
    return prefix[1:], scores


def test_validation_and_inspection(data: Any, run_command: Any) -> None:
    folder, sentences = data
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:x", "elmo_affine": True}
    weights = make.seq2seq(args, {"src": make.CLOZE}, {"src": WORDS["en"] + 4, "tgt": WORDS["de"] + 4})
    dictionaries = ["--src-dict", folder / "dict.en.txt", "--tgt-dict", folder / "dict.de.txt"]
    torch.save({"args": Namespace(**make.CLOZE), "model": {}}, folder / "src.pt")
    path = convert(run_command, folder, weights, args, *dictionaries, "--lm", folder / "src.pt")
    flags = ["--task", "translation", "--valid-subset", "test", "--batch-size", "4"]
    done = run_command("fairseq-validate", folder / "pairs", "--path", path, *flags, *USER_DIR)
    assert done.status == 0, done.output
    found = re.search(r"\| loss ([\d.]+)", done.output)
    assert found is not None
    losses = []
    for source, target in zip(sentences["en"], sentences["de"]):
        logits = reference.seq2seq(weights, args, {"src": make.CLOZE}, source, [EOS, *target[:-1]])[1]
        losses += [-row.log_softmax(0)[word].item() for row, word in zip(logits, target)]
    assert float(found[1]) == pytest.approx(sum(losses) / len(losses) / math.log(2), abs=1e-3)
    done = run_command("lmfusion", "inspect", path)
    assert "source side: cloze language model, elmo" in done.output
