"""Made-up run folders, as the recipes leave them, with figures that the tests choose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lmfusion.report.page.comparison import Comparison, compare
from lmfusion.report.page.find import find_runs
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.runs import provenance
from lmfusion.scoring import rouge

BLEU_SIGNATURE = "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
MACHINE = {"system": "Linux", "processor": "x86_64", "cores": 2, "gpu": None}
STRATEGIES = {
    "baseline": "--arch lmfusion_tiny",
    "shared": "--arch lmfusion_tiny --share-all-embeddings",
    "src_elmo": "--arch src_elmo_tiny --src-lm cloze.pt --src-elmo-affine",
    "src_ft": "--arch src_ft_tiny --src-lm cloze.pt",
    "tgt_elmo": "--arch tgt_elmo_tiny --tgt-lm causal.pt",
    "tgt_ft": "--arch tgt_ft_tiny --tgt-lm causal.pt",
    "lstm": "--arch lstm_lmfusion",
    "lstm_src_elmo": "--arch lstm_lmfusion --src-fusion elmo --src-lm cloze.pt",
    "src_elmo_shdemb": "--arch src_elmo_tiny --src-lm cloze.pt --src-elmo-affine --share-decoder-input-output-embed",
}
SOURCES = ["one small house", "two old trees", "three green birds"]
REFERENCES = ["das ist ein kleines Haus", "das sind zwei alte Bäume", "das sind drei grüne Vögel"]
OUTPUT = ["das ist ein kleines Hans", "das sind zwei alte Bäume", "das sind drei Vögel"]


def digest(text: str) -> str:
    """A stand-in for a file's hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def log_line(kind: str, **values: object) -> str:
    """A line as fairseq writes it with --log-format json."""
    return f"2030-01-31 12:00:00 | INFO | {kind} | {json.dumps({name: str(value) for name, value in values.items()})}\n"


@dataclass
class Maker:
    """Writes run folders into a folder; every keyword has what an ordinary run has."""

    folder: Path
    pair: tuple[str, str] = ("en", "de")
    dictionary: str = "of the language model"
    made: list[Path] = field(default_factory=list)

    def run(
        self,
        name: str,
        strategy: str = "baseline",
        *,
        bleu: float | None = None,
        size: int = 2500,
        seed: int = 1,
        flags: str = "",
        losses: Sequence[float] = (8.0, 6.0, 5.0),
        speeds: tuple[float, float] = (1000.0, 100.0),
        scores: dict[str, dict[str, Any]] | None = None,
        generate: bool = True,
        **record: Any,
    ) -> Path:
        """A finished run with this BLEU on "test", or with other scores; ``record`` replaces parts of run.json."""
        path = self.folder / name
        path.mkdir(parents=True)
        data = f"data/bitext-{size} -s {self.pair[0]} -t {self.pair[1]}"
        train = f"fairseq-train {data} --task translation --max-update 30 --save-dir {path}/checkpoints --seed {seed}"
        train = f"{train} {STRATEGIES.get(strategy, strategy)} {flags}"
        steps = {"train": self.step(train, {"updates": 30, "tokens_per_second": speeds[0], **best(losses)}, size)}
        if generate:
            command = f"fairseq-generate {data} --path {path}/x.pt --beam 5"
            steps["generate"] = self.step(command, {"sentences": 3, "tokens_per_second": speeds[1]}, size)
        content = {
            "name": path.name,
            "git_commit": "c0ffee",
            "steps": steps,
            "versions": {"python": "3.11.7", "sacrebleu": "2.6.0"},
            "machine": MACHINE,
            "seed": seed,
            "state": "finished",
            **record,
        }
        (path / "run.json").write_text(json.dumps(content), encoding="utf-8")
        self.write_log(path, losses, size)
        self.write_scores(path, scores if scores is not None else ({} if bleu is None else {"test": self.bleu(bleu)}))
        self.made.append(path)
        return path

    @contextmanager
    def record(self, path: Path) -> Iterator[dict[str, Any]]:
        """Change a run.json: ``with maker.record(path) as record: record["state"] = "failed"``."""
        content = json.loads((path / "run.json").read_text(encoding="utf-8"))
        yield content
        (path / "run.json").write_text(json.dumps(content), encoding="utf-8")

    def write_scores(self, path: Path, entries: dict[str, dict[str, Any]]) -> None:
        """scores.json, and the output that was scored."""
        if entries:
            (path / "scores.json").write_text(json.dumps(entries), encoding="utf-8")
        for entry in entries.values():
            if "hypotheses" in entry:
                (path / entry["hypotheses"]).write_text("".join(f"{line}\n" for line in OUTPUT), encoding="utf-8")

    def step(self, command: str, result: dict[str, Any], size: int) -> dict[str, Any]:
        """The record of a finished step."""
        source, target = self.pair
        files = [f"{split}.{source}-{target}.{side}.bin" for split in ("test", "train") for side in self.pair]
        hashes = {name: digest(name + (str(size) if name.startswith("train") else "")) for name in files}
        hashes.update({f"dict.{side}.txt": digest(self.dictionary) for side in self.pair})
        common = {"seconds": 61.0, "attempts": 1, "state": "finished", "started_at": "2030-01-31T12:00:00Z"}
        return {**common, "command": command.split(), "data_sha256": hashes, "result": result}

    def bleu(
        self, value: float, data_set: str = "test", reference: str = "the reference", sentences: int = 3
    ) -> dict[str, Any]:
        """An entry of scores.json."""
        return {
            "bleu": value,
            "chrf": value + 20,
            "signature": BLEU_SIGNATURE,
            "chrf_signature": "chrF2|nrefs:1",
            "legacy_signature": "BLEU+case.mixed",
            "sentences": sentences,
            "hypotheses": f"{data_set}.hyp",
            "reference_sha256": digest(reference),
        }

    def rouge(self, one: float, two: float, longest: float) -> dict[str, Any]:
        """An entry of scores.json; F1 in 0..1."""
        f1 = {"rouge1": one, "rouge2": two, "rougeL": longest}
        measures = {name: {"f1": {"mean": value}, "recall": {"mean": 0.9}} for name, value in f1.items()}
        signature = rouge.signature(None, {}, rouge.INTERVAL)
        return {**measures, "signature": signature, "summaries": 3, "hypotheses": "test.hyp"}

    def write_log(self, path: Path, losses: Sequence[float], size: int) -> None:
        """A training log with a training interval and a validation for each loss."""
        lines = [f"| INFO | data_utils | loaded {size - 1:,} examples from: data/bitext-{size}/train.en-de.en\n"]
        for number, loss in enumerate(losses, start=1):
            update, power = 10 * number, 2**loss if loss == loss else loss
            lines.append(log_line("train_inner", loss=loss, ppl=power, wps=1000, num_updates=update, lr=0.1))
            lines.append(log_line("valid", valid_loss=loss, valid_ppl=power, valid_num_updates=update))
        (path / "train.log").write_text("".join(lines), encoding="utf-8")

    def texts(self) -> tuple[Path, Path]:
        """Source and reference text of "test", with which the scores' hash agrees."""
        self.folder.mkdir(parents=True, exist_ok=True)
        source, reference = self.folder / "test.source", self.folder / "test.reference"
        source.write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")
        reference.write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
        return source, reference


def best(losses: Sequence[float]) -> dict[str, Any]:
    """What a log's summary says of these losses."""
    finite = [loss for loss in losses if loss == loss]
    if not finite:
        return {"best_valid_loss": None, "best_valid_perplexity": None, "best_valid_updates": None}
    lowest = min(finite)
    updates = 10 * (list(losses).index(lowest) + 1)
    return {"best_valid_loss": lowest, "best_valid_perplexity": 2**lowest, "best_valid_updates": updates}


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    """Writes into a folder of the test's own."""
    return Maker(tmp_path / "runs")


Comparing = Callable[..., "tuple[list[Comparison], Notices]"]


@pytest.fixture
def compared() -> Comparing:
    """Comparisons of run folders, and what was noted."""

    def compare_folders(*words: object) -> tuple[list[Comparison], Notices]:
        notices = Notices()
        found = find_runs([str(word) for word in words], notices)
        return compare([read_run(each, notices) for each in found], notices), notices

    return compare_folders


@pytest.fixture
def texts() -> Callable[[Notices, str], list[str]]:
    """What was noted of a kind: ``texts(notices, WARNING)``."""
    return lambda notices, kind: [notice.text for notice in notices.of_kind(kind)]


@pytest.fixture
def study(maker) -> Path:
    """Two strategies, two sizes, two seeds, and a language model; their texts are beside them."""
    source, reference = maker.texts()
    texts = {"source": source, "reference": reference}
    named = {key: str(path) for key, path in texts.items()}
    named.update({f"{key}_sha256": provenance.hash_file(path) for key, path in texts.items()})
    shares = {"embedding": 0.5, "layer 1": 0.3, "joined": 0.2}
    mix = {"mixes": [{"side": "source", "gamma": 1.5, "shares": shares}], "language_models": []}
    for size in (2500, 5000):
        for seed in (1, 2):
            entry = {**maker.bleu(size / 500 + seed), **named}
            maker.run(f"base-{size}-{seed}", scores={"test": entry}, size=size, seed=seed)
            entry = {**maker.bleu(size / 500 + 2 * seed), **named}
            model = {"model": {"trainable": 5_000_000, "frozen": 1_000_000, **mix}}
            maker.run(f"elmo-{size}-{seed}", "src_elmo", scores={"test": entry}, size=size, seed=seed, **model)
    lm = maker.run("lm.en", "--arch bi_transformer_lm", generate=False)
    (lm / "run.json").write_text((lm / "run.json").read_text().replace('"translation"', '"language_modeling"'))
    return maker.folder
