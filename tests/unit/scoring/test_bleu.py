"""BLEU against sacreBLEU's published example, its own command, its 1.x release and the definition."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from lmfusion.errors import InputError
from lmfusion.scoring import bleu

# The example in sacreBLEU's README ("Using SacreBLEU from Python") with the numbers printed there.
HYPOTHESES = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
REFERENCES = [
    ["The dog bit the man.", "It was not unexpected.", "The man bit him first."],
    ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."],
]


def test_published_example() -> None:
    score = bleu.score(HYPOTHESES, REFERENCES)
    assert round(score.bleu, 2) == 48.53
    assert [round(precision, 1) for precision in score.precisions] == [82.4, 50.0, 45.5, 37.5]
    assert round(score.brevity_penalty, 3) == 0.943
    assert (score.hypothesis_length, score.reference_length, score.sentences) == (17, 18, 3)


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def random_text(seed: int, count: int = 40) -> list[str]:
    """Sentences of a small vocabulary, so that higher n-grams match now and then."""
    words = "Der Hund, die Katze und das kleine Haus (grün) sieht man: nicht 3.5 Euro!".split()
    generator = random.Random(seed)
    return [" ".join(generator.choices(words, k=generator.randint(4, 15))) for _ in range(count)]


@pytest.mark.parametrize("references", [1, 2, 3])
def test_equals_sacrebleu_command(tmp_path: Path, references: int) -> None:
    hypotheses, streams = random_text(0), [random_text(seed) for seed in range(1, references + 1)]
    files = [write(tmp_path / f"ref{number}", stream) for number, stream in enumerate(streams)]
    command = [sys.executable, "-m", "sacrebleu", *files, "-i", write(tmp_path / "hyp", hypotheses)]
    printed = subprocess.run([*command, "-m", "bleu", "chrf", "-w", "6"], check=True, capture_output=True, text=True)
    official = {entry["name"]: entry for entry in json.loads(printed.stdout)}

    score = bleu.score(hypotheses, streams)

    assert round(score.bleu, 6) == official["BLEU"]["score"] > 0
    assert round(score.chrf, 6) == official["chrF2"]["score"] > 0
    assert score.signature == f"BLEU|{official['BLEU']['signature']}"
    assert score.chrf_signature == f"chrF2|{official['chrF2']['signature']}"


def bleu_by_definition(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. 2002 for one reference and text that needs no tokenization."""

    def ngrams(text: str, order: int) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))

    logs = []
    for order in range(1, 5):
        pairs = [(ngrams(h, order), ngrams(r, order)) for h, r in zip(hypotheses, references)]
        matched = sum(sum((ours & theirs).values()) for ours, theirs in pairs)
        logs.append(math.log(matched / sum(sum(ours.values()) for ours, _ in pairs)))
    ours, theirs = (sum(len(text.split()) for text in texts) for texts in (hypotheses, references))
    return 100 * math.exp(min(0.0, 1 - theirs / ours) + sum(logs) / 4)


def test_equals_the_definition() -> None:
    hypotheses = ["a b c d e f", "g h i j k", "a c b d"]
    references = ["a b c d e g f", "g h i j k l m", "a c d b"]
    assert bleu.score(hypotheses, references).bleu == pytest.approx(bleu_by_definition(hypotheses, references))


def test_single_reference_as_flat_list_or_as_one_stream() -> None:
    assert bleu.score(HYPOTHESES, REFERENCES[0]) == bleu.score(HYPOTHESES, REFERENCES[:1])


def test_legacy_signature_is_the_form_of_sacrebleu_1() -> None:
    # What `sacrebleu ref1 ref2 -i hyp` of release 1.5.1 printed, but for the version.
    version = sacrebleu.__version__
    expected = f"BLEU+case.mixed+numrefs.2+smooth.exp+tok.13a+version.{version}"
    assert bleu.score(HYPOTHESES, REFERENCES).legacy_signature == expected


def test_legacy_signature_names_the_test_set_and_language_pair_when_known() -> None:
    score = bleu.score(HYPOTHESES, REFERENCES[0], test_set="wmt18", language_pair="en-de")
    assert score.legacy_signature == (
        f"BLEU+case.mixed+lang.en-de+numrefs.1+smooth.exp+test.wmt18+tok.13a+version.{sacrebleu.__version__}"
    )


def test_empty_hypothesis_counts_as_an_empty_translation() -> None:
    score = bleu.score([HYPOTHESES[0], "", ""], REFERENCES[0])
    assert score.hypothesis_length == 6
    assert score.brevity_penalty < 0.2


def test_case_matters() -> None:
    assert bleu.score(["the dog bit the man."], ["The dog bit the man."]).bleu < 100


def test_different_numbers_of_sentences_are_an_error_naming_both() -> None:
    with pytest.raises(InputError, match=r"the system has 3 hypotheses, but reference 2 of 2 has 2 sentences"):
        bleu.score(HYPOTHESES, [REFERENCES[0], REFERENCES[1][:2]])


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), ([], ["a"]), (["a"], [])])
def test_nothing_to_score_is_an_error(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(InputError, match="Nothing to score"):
        bleu.score(hypotheses, references)


def test_to_dict_survives_json() -> None:
    values = bleu.score(HYPOTHESES, REFERENCES).to_dict()
    assert json.loads(json.dumps(values)) == values


def test_paired_bootstrap_equals_sacrebleu_command(tmp_path: Path) -> None:
    reference, baseline = random_text(1), random_text(2)
    better = [ours if number % 3 == 0 else other for number, (ours, other) in enumerate(zip(reference, baseline))]
    files = [write(tmp_path / name, text) for name, text in (("ref", reference), ("base", baseline), ("new", better))]
    command = [sys.executable, "-m", "sacrebleu", files[0], "-i", *files[1:], "-m", "bleu", "-w", "6"]
    printed = subprocess.run(
        [*command, "--paired-bs", "--paired-bs-n", "300", "-f", "json"], check=True, capture_output=True, text=True
    )
    official = [entry["BLEU"] for entry in json.loads(printed.stdout)]

    results = bleu.paired_bootstrap(baseline, {"new": better}, reference, samples=300)

    assert [result.name for result in results] == ["baseline", "new"]
    for result, entry in zip(results, official):
        assert result.bleu == pytest.approx(entry["score"], abs=1e-9)
        assert result.mean == pytest.approx(entry["mean"], abs=1e-9)
        assert result.ci == pytest.approx(entry["ci"], abs=1e-9)
    assert results[0].p_value is None
    assert results[1].p_value == pytest.approx(official[1]["p_value"], abs=1e-6)
    assert results[1].p_value == pytest.approx(1 / 301), "a third of the sentences perfect: never by chance"
    assert "bs:300" in results[1].signature


@pytest.mark.parametrize(("count", "references"), [(40, 1), (41, 2), (333, 1)])
@pytest.mark.parametrize("seed", ["12345", "7"])
def test_paired_bootstrap_equals_sacrebleus_to_the_last_digit(
    monkeypatch: pytest.MonkeyPatch, count: int, references: int, seed: str
) -> None:
    """sacreBLEU draws all samples at once; drawn one by one, they are the same."""
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    streams = [random_text(number, count) for number in range(references)]
    systems = {name: random_text(number, count) for name, number in (("a", 11), ("b", 12))}
    baseline = [*streams[0][: count // 5], *random_text(10, count)[count // 5 :]]
    named = [("baseline", baseline), *systems.items()]
    signatures, scores = PairedTest(named, {"BLEU": BLEU()}, streams, test_type="bs", n_samples=200)()
    results = bleu.paired_bootstrap(baseline, systems, streams, samples=200)
    assert [(r.bleu, r.mean, r.ci, r.p_value) for r in results] == [
        (r.score, r.mean, r.ci, r.p_value) for r in scores["BLEU"]
    ]
    assert {r.signature for r in results} == {f"BLEU|{signatures['BLEU']}"}


@pytest.mark.parametrize("references", [1, 3])
def test_score_equals_sacrebleus_to_the_last_digit(references: int) -> None:
    hypotheses, streams = random_text(0, 500), [random_text(number, 500) for number in range(1, references + 1)]
    score = bleu.score(hypotheses, streams)
    metrics = BLEU(), CHRF()
    official, chrf = (metric.corpus_score(hypotheses, streams) for metric in metrics)
    assert (score.bleu, score.precisions, score.brevity_penalty) == (
        official.score,
        tuple(official.precisions),
        official.bp,
    )
    assert score.chrf == chrf.score
    assert [score.signature, score.chrf_signature] == [
        f"{found.name}|{metric.get_signature()}" for found, metric in zip((official, chrf), metrics)
    ]


@pytest.mark.slow
def test_memory_grows_by_little_more_than_the_counts_of_a_line() -> None:
    """sacreBLEU keeps the n-grams of each reference and all samples, here 16 KB a line.

    What is left of it at this size is the tokenizer's cache, which ends at 65,536 lines.
    """
    count = 3000
    hypotheses, reference = random_text(0, count), random_text(1, count)
    bleu.score(hypotheses[:10], reference[:10])
    tracemalloc.start()
    try:
        bleu.score(hypotheses, reference)
        bleu.paired_bootstrap(hypotheses, {"x": reference}, reference, samples=100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4000 * count


def test_tokenized_text_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    text = [f"{line} ." for line in random_text(0, 2500)]
    bleu.score(text, text)
    assert sum("forgot to detokenize" in record.message for record in caplog.records) == 1


def test_paired_bootstrap_of_equal_systems_is_not_significant() -> None:
    text = random_text(2)
    assert bleu.paired_bootstrap(text, {"same": text}, random_text(1))[1].p_value == 1.0


def test_two_systems_without_a_word_in_common_with_the_reference_are_equally_bad() -> None:
    """Their texts differ and their scores are 0 on every sample: sacreBLEU calls that significant."""
    reference = ["a b c d"] * 5
    assert bleu.paired_bootstrap(["x"] * 5, {"other": ["y"] * 5}, reference)[1].p_value == 1.0


def test_one_text_is_not_taken_for_a_list_of_its_letters() -> None:
    with pytest.raises(InputError, match="list"):
        bleu.score("abc", ["a", "b", "c"])


def test_paired_bootstrap_names_the_system_of_another_length() -> None:
    with pytest.raises(InputError, match="new has 2 hypotheses, but reference 1 of 1 has 3"):
        bleu.paired_bootstrap(HYPOTHESES, {"new": HYPOTHESES[:2]}, REFERENCES[0])


def test_paired_bootstrap_needs_a_sample() -> None:
    with pytest.raises(InputError, match="samples 0"):
        bleu.paired_bootstrap(HYPOTHESES, {"new": HYPOTHESES}, REFERENCES[0], samples=0)


@pytest.mark.parametrize("systems", [{}, {"baseline": HYPOTHESES}])
def test_paired_bootstrap_needs_a_system_with_a_name_of_its_own(systems: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match='not called "baseline"'):
        bleu.paired_bootstrap(HYPOTHESES, systems, REFERENCES[0])
