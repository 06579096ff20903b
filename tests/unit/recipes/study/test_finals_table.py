"""The table of the chosen models: scores as sacreBLEU has them, and which rows are compared."""

from __future__ import annotations

import dataclasses
import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from study import finals_table, parts_table, step
from study.budget import CPU, PROTOCOL
from study.finals import finals
from study.plan import Cell, Plan
from study.results import BLIND, Results
from study.search import Setting
from study.task import TASKS

from lmfusion.errors import InputError
from lmfusion.runs.run_folder import RunFolder

REFERENCES = 20 * ["Das alte Haus steht am Fluss .", "Ein Paket für Bilder und Karten", "Es gibt keine Dateien mehr"]
WORSE = 20 * ["Das Haus steht am Fluss .", "Ein Paket für Bilder und Karten", "Es gibt Dateien"]
WORST = 20 * ["Das Haus", "Ein Paket für Bilder", "Es gibt keine"]
BITS = {"baseline": 1.4, "shared": 1.3, "src_elmo_shdemb": 1.1}


@pytest.fixture
def plan(workplace: Any) -> Plan:
    """A study of three rows whose choices are committed, of a corpus with a short test set."""
    for folder, name in (("en-de", "test"), ("blind", "help")):
        (workplace.folder / "data-prep" / "debian" / folder).mkdir(exist_ok=True)
        for side in ("de", "en"):
            content = "".join(f"{line}\n" for line in REFERENCES)
            path = workplace.folder / "data-prep" / "debian" / folder / f"{name}.{side}"
            path.write_text(content, encoding="utf-8")
            path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(content.encode()))
    results = Results(workplace.folder / "kept")
    choose(results, BITS)
    return Plan(workplace.folder / "out", TASKS["debian_ende"], PROTOCOL, tuple(BITS), results)


def choose(results: Results, bits: Mapping[str, float | None]) -> None:
    """Commit choices in the place of those that were there."""
    assert results.folder is not None
    (results.folder / "choices.json").unlink(missing_ok=True)
    setting = Setting(0.3, 0.0, 8000, 0.003)
    values = {"size": 10000, **dataclasses.asdict(setting)}
    results.describe(
        {}, [{"row": row, **values, "bits_per_character": {setting.name: loss}} for row, loss in bits.items()], {}
    )


def commit(plan: Plan, row: str, seed: int, lines: list[str], blind: list[str] | None = None) -> None:
    """Leave what is committed of a run."""
    folder = plan.results.path(Cell(row, 10000, seed))
    assert folder is not None
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps({"test": {"bleu": 1.0, "hypotheses": "test.hyp"}}), encoding="utf-8")
    (folder / "test.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if blind:
        (folder / BLIND).write_text("".join(f"{line}\n" for line in blind), encoding="utf-8")


def cells(text: str, start: str) -> list[str]:
    """The cells of the table's line that starts so."""
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_scores_and_differences_are_sacrebleus_over_seeds(plan: Plan) -> None:
    commit(plan, "shared", 1, WORST, blind=WORST)
    for seed, lines in enumerate((REFERENCES, WORSE, WORSE), start=1):
        commit(plan, "src_elmo_shdemb", seed, lines)
    text = finals_table.sections(plan, finals(plan))
    best, worse, worst = (
        (sacrebleu.corpus_bleu(lines, [REFERENCES]).score, sacrebleu.corpus_chrf(lines, [REFERENCES]).score)
        for lines in (REFERENCES, WORSE, WORST)
    )
    means = [(first + 2 * second) / 3 for first, second in zip(best, worse)]
    spread = [(first - second) / 3**0.5 for first, second in zip(best, worse)]  # of a, b, b with n - 1
    assert cells(text, "| src_elmo_shdemb |") == [
        "src_elmo_shdemb",
        f"{means[0]:.2f} ± {spread[0]:.2f} / {means[1]:.2f} ± {spread[1]:.2f} (3 seeds)",
        "",
    ]
    once = f"{worst[0]:.2f} / {worst[1]:.2f} (1 seed)"
    assert cells(text, "| shared |") == ["shared", once, once]

    found = cells(text, "| 1 | src_elmo_shdemb |")
    assert found[2] == "shared", "the better of two by validation"
    differences = [f"{mean - other:+.2f}" for mean, other in zip(means, worst)]
    assert re.findall(r"(\S+) \(", found[3]) == differences, "not bold, for one row has one seed"
    assert found[4] == "", "the blind test was not translated by both"
    assert "lstm" in text, "it says that the best may be another"
    commit(plan, "baseline", 1, WORSE)
    text = finals_table.sections(plan, finals(plan))
    assert cells(text, "|  | shared | baseline |")[3].startswith("-")
    assert "| baseline | shared |" not in text, "no difference is told in both directions"
    assert "The 6 intervals" in text, "three pairs, BLEU and chrF"
    commit(plan, "shared", 2, WORST)
    text = finals_table.sections(plan, finals(plan))
    found = cells(text, "| 1 | src_elmo_shdemb |")
    assert re.findall(r"\*\*(.\d+\.\d+)\*\*", found[3]) == differences, "two seeds of each, far apart"


def test_the_second_pair_has_one_test_and_says_on_which_pair_its_rows_were_chosen(plan: Plan, tmp_path: Path) -> None:
    for side in ("en", "fr"):
        (tmp_path / f"train.{side}").write_text(10000 * "a\n", encoding="utf-8")
        (tmp_path / f"test.{side}").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    own = Results(tmp_path / "own", settings=plan.results.folder)
    task = dataclasses.replace(TASKS["debian_enfr"], text=str(tmp_path))
    second = Plan(plan.out, task, PROTOCOL, tuple(BITS), own)
    commit(second, "shared", 1, WORSE)
    text = finals_table.sections(second, finals(second))
    worse = sacrebleu.corpus_bleu(WORSE, [REFERENCES]).score
    (row,) = cells(text, "| shared |")[1:]
    assert row.startswith(f"{worse:.2f} / ")
    assert cells(text, "| row |") == ["row", "test"]
    assert "blind" not in text
    assert re.search(r"validation of English-German.*: shared \(1\.300\)", text)


def test_parts_are_scored_as_their_sentences_alone_and_seeds_are_averaged(plan: Plan) -> None:
    corpus = plan.task.corpus
    known, other, beyond = REFERENCES[:3]
    # The words of the third stand five times in the corpus, but not among the first 10,000 pairs.
    lines = [*5 * [known], *9995 * ["x"], *5 * [beyond]]
    (corpus / "train.de").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (corpus / "mono.train.de").write_text(f"{other}\n", encoding="utf-8")
    commit(plan, "shared", 1, WORST, blind=WORST)
    assert parts_table.sections(plan, finals(plan)) == ("", {}), "there is nothing to compare it with"
    for seed, lines in enumerate((REFERENCES, WORSE), start=1):
        commit(plan, "src_elmo_shdemb", seed, lines)
    text, pictures = parts_table.sections(plan, finals(plan))

    def bleu(lines: list[str], wanted: set[str]) -> float:
        pairs = [(line, reference) for line, reference in zip(lines, REFERENCES) if reference in wanted]
        return sacrebleu.corpus_bleu([line for line, _ in pairs], [[reference for _, reference in pairs]]).score

    for start, wanted in (
        ("rare words: no rare word", {known}),
        ("rare words: two or more", set(REFERENCES) - {known}),
        ("phrases of the LM's text: 5 words in a row or more", {other}),
    ):
        first = bleu(WORST, wanted)
        mean = (bleu(REFERENCES, wanted) + bleu(WORSE, wanted)) / 2
        count = sum(reference in wanted for reference in REFERENCES)
        assert cells(text, f"| {start} |")[1:] == [str(count), f"{first:.2f}", f"{mean - first:+.2f}"]
    # names: Das, Haus, Fluss; Ein, Paket, Bilder, Karten; Dateien
    assert cells(text, "| names in source")[2:] == ["62.5%", "100.0%"], "five of eight; all"
    assert "Blind" not in text, "one row alone has translated it"
    assert set(pictures) == {"parts-10000.svg"}
    assert "(parts-10000.svg)" in text


def test_the_best_row_without_a_language_model_is_that_of_validation(plan: Plan) -> None:
    choose(plan.results, {"baseline": 1.2, "lstm": 1.25, "shared": None})  # of which no loss is known
    for row, lines in (("baseline", WORST), ("shared", REFERENCES), ("src_elmo_shdemb", WORSE)):
        commit(plan, row, 1, lines)
    text = finals_table.sections(plan, finals(plan))
    assert "baseline (1.200)" in text
    assert cells(text, "| 1 | src_elmo_shdemb |")[2] == "baseline"
    assert cells(text, "|  | shared | baseline |")[3].startswith("+")
    assert text.count("| src_elmo_shdemb | baseline |") == 1, "the baseline is the best as well: told once"


def test_nothing_is_told_of_a_study_without_search_or_without_scores(plan: Plan) -> None:
    assert finals_table.sections(plan, finals(plan)) == ""
    commit(plan, "shared", 1, WORST)
    assert finals_table.sections(plan, finals(plan))
    assert not list(finals(dataclasses.replace(plan, budget=CPU)))


def test_a_later_seed_alone_is_trained_with_the_committed_choice_and_only_of_finals(plan: Plan) -> None:
    later = dataclasses.replace(plan, budget=dataclasses.replace(PROTOCOL, seeds=(2,)), rows=("shared", "src_elmo"))
    assert later.cells() == [Cell("shared", 10000, 2)]
    assert later.before_training("shared", 10000, 2) == later.data(10000)
    with pytest.raises(InputError, match="src_elmo"):
        dataclasses.replace(later, rows=("src_elmo",)).cells()


def test_the_blind_test_is_translated_after_the_choice_is_committed_and_once(plan: Plan) -> None:
    def blind() -> set[str]:
        return {mark for mark in plan.targets() if mark.endswith("/blind")}

    first, elsewhere = Cell("shared", 10000, 1), Cell("src_elmo_shdemb", 10000, 1)
    commit(plan, elsewhere.row, 1, WORSE)
    wanted = {plan.mark("blind", cell) for cell in plan.cells() if cell != elsewhere}
    assert blind() == wanted, "a committed run that was trained on another machine is not trained again for it"

    commit(plan, first.row, 1, WORST)
    trained = Path(plan.mark("train", first))
    trained.parent.mkdir(parents=True)
    trained.touch()
    assert blind() == wanted, "its model is here"
    run = RunFolder(plan.out / "run")
    run.path.mkdir()
    (run.path / BLIND).write_text("ein Haus\n", encoding="utf-8")
    assert plan.results.add(first, run, plan.out)
    assert not plan.results.add(first, run, plan.out)
    assert blind() == wanted - {plan.mark("blind", first)}

    choose(plan.results, {})
    assert blind() == set()


def test_a_translation_that_fails_leaves_none(plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cell = Cell("shared", 10000, 1)
    run = step.layout.run_folder(plan, cell, plan.setting(cell))
    run.path.mkdir(parents=True)
    translator = tmp_path / "translator"
    translator.write_text('#!/usr/bin/env bash\n[[ "$4" == "$RUN" ]] && xz -dc "$5"\n', encoding="utf-8")
    translator.chmod(0o755)
    monkeypatch.setattr(step.sys, "executable", str(translator))
    monkeypatch.setenv("RUN", "another")
    with pytest.raises(step.InputError, match="exit status"):
        step.translate_blind(plan, cell)
    assert not (run.path / BLIND).exists()

    monkeypatch.setenv("RUN", str(run.path))
    step.translate_blind(plan, cell)
    assert (run.path / BLIND).read_text(encoding="utf-8").splitlines() == REFERENCES
