"""Every benchmark runs end to end on tiny models: what it prints and writes, not how fast it is."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
ROWS = ["baseline", "SHARED", "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT", "SRC-ELMO+SHDEMB"]
Measure = Callable[..., dict[str, Any]]


def cells(table: dict[str, Any], column: str) -> dict[str, str]:
    """A column by row."""
    number = table["columns"].index(column)
    return {row[0]: row[number] for row in table["rows"]}


def test_training_tells_ratio_and_limit_of_every_row(measure: Measure, capsys: pytest.CaptureFixture[str]) -> None:
    found = measure("training", "--tokens 72 --no-memory")
    table = found["tables"][0]
    assert list(cells(table, "time / baseline")) == [*ROWS, "SRC-ELMO, stored", "fairseq transformer"]
    limits = {name: float(text.rstrip("×")) for name, text in cells(table, "arithmetic limit").items()}
    assert limits["baseline"] == limits["SHARED"] == limits["fairseq transformer"] == 1.0
    assert 1.0 < limits["SRC-ELMO, stored"] < limits["SRC-ELMO"] < limits["SRC-FT"], "only the projection is left"
    assert 1.0 < limits["TGT-ELMO"] < limits["TGT-FT"]
    assert cells(table, "time / baseline")["baseline"] == "1.00× (1.00–1.00)"
    out = capsys.readouterr().out
    assert "arithmetic limit" in out
    assert f"torch {torch.__version__}" in out, "versions are told"
    assert found["machine"]["threads"] == 1
    assert found["command"][0] == "training"
    assert "--json" not in found["command"], "the command can be repeated elsewhere"


def test_generation_without_the_cache_makes_more_operations(measure: Measure) -> None:
    found = measure("generation", "--rows TGT-ELMO TGT-FT --max-tokens 36 --length 6 --no-memory")
    operations = found["figures"]["batches"]["36"]["operations"]
    assert list(operations) == ["baseline", "TGT-ELMO", "TGT-ELMO, LM again", "TGT-FT", "TGT-FT, LM again"]
    for row in ("TGT-ELMO", "TGT-FT"):
        assert operations["baseline"] < operations[row] < operations[f"{row}, LM again"]


def test_other_programs_translate_as_the_baseline(measure: Measure) -> None:
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")
    (table,) = measure("generation", "--peers --max-tokens 288 --length 12")["tables"]
    same = cells(table, "best hypothesis among the baseline's")
    programs = ["fairseq transformer", "baseline", "baseline, int8", "HF Marian", "CTranslate2", "CTranslate2, int8"]
    assert list(same) == programs
    assert same["fairseq transformer"] == same["baseline"] == "8 of 8"
    # Random weights have near ties, and only fairseq counts the last </s>.
    assert min(same["HF Marian"], same["CTranslate2"]) >= "5 of 8"
    assert cells(table, "speed / fairseq transformer")["fairseq transformer"] == "1.00× (1.00–1.00)"


def test_a_row_that_does_not_exist_is_refused(module: Callable[[str], Any], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("training", "generation"):
        with pytest.raises(SystemExit):
            module(name).main(["--rows", "SRC-EMLO"])
        assert "--rows 'SRC-EMLO': there are 'baseline', 'SHARED', 'SRC-ELMO'" in capsys.readouterr().err


def test_in_bfloat16_the_baseline_stands_beside_in_float32(measure: Measure) -> None:
    found = measure("training", "--tokens 72 --no-memory --precision autocast --rows SRC-FT 'baseline, fp32'")
    assert list(cells(found["tables"][0], "time / baseline")) == ["baseline", "SRC-FT", "baseline, fp32"]


def test_lstms_of_the_same_weights_are_timed_in_both_precisions(measure: Measure, module: Callable[[str], Any]) -> None:
    found = measure("lstm", "--tokens 72")
    rows = ["fairseq's lstm, fp32", "lstm_lmfusion, fp32", "fairseq's lstm, autocast", "lstm_lmfusion, autocast"]
    assert list(cells(found["tables"][0], "times as fast")) == rows
    lstm, sizes = module("lstm"), module("models").Sizes(60, 16, 24, 1, 1, 16, 24, 1, 1)
    theirs, ours = (lstm.build(name, sizes).state_dict() for name in (lstm.FAIRSEQS, lstm.OURS))
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)


def test_fairseqs_transformer_is_no_row_of_the_criterions_it_does_not_know(
    measure: Measure, module: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    chunked = "--criterion chunked_label_smoothed_cross_entropy"
    rows = cells(measure("training", f"--tokens 72 --no-memory {chunked}")["tables"][0], "time / baseline")
    assert list(rows) == [*ROWS, "SRC-ELMO, stored"]
    with pytest.raises(SystemExit):
        module("training").main([*chunked.split(), "--rows", "fairseq transformer"])
    assert "--rows 'fairseq transformer': there are 'baseline'" in capsys.readouterr().err


def test_reading_again_gives_the_same_states(module: Callable[[str], Any]) -> None:
    """Both ways of decoding compute one model, or their ratio would mean nothing."""
    models, rows, uncached = module("models"), module("rows"), module("uncached")
    sizes = rows.replace(rows.SMALL, vocabulary=40, channels=16, ffn=32, layers=1, heads=2)
    sizes = rows.replace(sizes, lm_channels=16, lm_ffn=32, lm_layers=2, lm_heads=2)
    torch.manual_seed(1)
    model = models.seq2seq(sizes, tgt="elmo").eval()
    tokens = torch.randint(4, 40, (2, 5))

    def steps() -> torch.Tensor:
        state: dict[str, Any] = {}
        encoder_out = model.encoder(tokens, torch.tensor([5, 5]))
        last = [model.decoder(tokens[:, :end], encoder_out, incremental_state=state)[0] for end in range(1, 6)]
        return torch.cat(last, 1)

    with torch.no_grad():
        cached = steps()
        again = uncached.Uncached(model)
        torch.testing.assert_close(steps(), cached)
        again.active = False
        torch.testing.assert_close(steps(), cached)


@pytest.mark.parametrize("precision", ["fp32", "autocast"])
def test_pretraining_is_compared_with_the_same_model(measure: Measure, precision: str) -> None:
    found = measure("pretraining", f"--tokens 72 --kinds cloze --no-memory --precision {precision}")
    figures = found["figures"]["cloze"]
    assert figures["logits_differ"] < 1e-4
    assert figures["matrix_peak"] > 0
    operations = figures["operations"]
    assert operations["plain"] == pytest.approx(operations["lmfusion"], rel=0.1), "but for the extra key"
    assert operations["fairseq transformer_lm"] == pytest.approx(operations["lmfusion"], rel=0.1)
    if importlib.util.find_spec("transformers"):  # its head has a further square layer, its blocks the same products
        assert operations["Hugging Face BERT"] == pytest.approx(operations["lmfusion"], rel=0.2)
        assert figures["seconds"]["Hugging Face BERT"]


def test_growth_is_drawn(measure: Measure, tmp_path: Path) -> None:
    found = measure("growth", f"--along depth --values 1 3 --tokens 32 --figures {tmp_path}")
    limits = {depth: rows["SRC-FT"]["limit"] for depth, rows in found["figures"]["depth"].items()}
    assert limits["3"] > limits["1"], "a deeper LM costs more"
    assert (tmp_path / "growth_depth.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert str(tmp_path) not in " ".join(found["command"])


def test_decoding_grows_for_both_strategies(measure: Measure) -> None:
    figures = measure("decoding_cache", "--lengths 8 16 --hypotheses 1")["figures"]
    for strategy in ("elmo", "finetune"):
        assert list(figures[strategy]["milliseconds"]) == ["8", "16"]
        assert figures[strategy]["operations"]["16"] > figures[strategy]["operations"]["8"]


def test_ratios_are_taken_within_a_round(module: Callable[[str], Any]) -> None:
    """A machine that is twice as slow in one round changes no ratio."""
    spread = module("timing").Spread
    ratio = spread([3.0, 6.0, 3.3]).over(spread([2.0, 4.0, 2.0]))
    assert ratio.median == pytest.approx(1.5)
    assert (ratio.least, ratio.most) == pytest.approx((1.5, 1.65))
    assert ratio.ratio() == "1.50× (1.50–1.65)"


@pytest.mark.slow
def test_peak_memory_is_each_rows_own(measure: Measure) -> None:
    """A fine-tuned LM keeps its weights, gradients and Adam's moments: 12 layers of 128 channels, 20,000 types."""
    sizes = "--channels 128 --layers 1 --lm-layers 12 --vocabulary 20000"
    peaks = measure("training", f"{sizes} --tokens 72 --rows SRC-FT")["figures"]["peak_bytes"]
    lm = 24 * 12 * 128**2 + 20_000 * 128
    assert peaks["SRC-FT"] - peaks["baseline"] > 0.5 * 4 * 4 * lm


def test_a_child_process_does_not_count_the_memory_of_its_parent() -> None:
    code = "import memory; print(memory.resident())"
    ballast = torch.ones(200_000_000)  # 800 MB, more than a process that only imports PyTorch takes
    child = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, check=True, stdout=subprocess.PIPE, text=True)
    assert 10_000_000 < int(child.stdout) < 4 * ballast.numel()


@pytest.mark.slow
def test_waiting_is_measured_in_two_processes_in_turn(measure: Measure) -> None:
    found = measure("waiting", "--tokens 72 --neighbours 0")
    assert list(found["figures"]["seconds"]["0"]) == ["spinning", "sleeping"]
    assert [len(spread["values"]) for spread in found["figures"]["seconds"]["0"].values()] == [1, 1]


@pytest.mark.slow
def test_memory_is_measured_for_each_number_of_kept_products(measure: Measure) -> None:
    found = measure("primitive_cache", "--tokens 72 --batches 3 --capacity 9 4")
    assert list(cells(found["tables"][0], "of the first's")) == ["9", "4"]
    assert cells(found["tables"][0], "of the first's")["9"] == "1.00"
    assert [len(spread["values"]) for spread in found["figures"]["seconds"].values()] == [1, 1]


def test_fairseqs_transformer_generates_beside_the_baseline(measure: Measure) -> None:
    found = measure("generation", "--rows 'fairseq transformer' --max-tokens 36 --length 6 --no-memory")
    operations = found["figures"]["batches"]["36"]["operations"]
    assert list(operations) == ["baseline", "fairseq transformer"]
    assert operations["baseline"] == operations["fairseq transformer"]


@pytest.mark.slow
def test_both_ways_of_translating_give_the_same(measure: Measure) -> None:
    found = measure("translate", "--sentences 6 --beam 2 --rounds 1 --batch-size 2 4 --threads 1", tiny=False)
    for size in ("2", "4"):
        figures = found["figures"]["batches"][size]
        assert (figures["same"]["lmfusion translate"], figures["sentences"]) == (6, 6)
        assert figures["bleu"]["lmfusion translate"] == figures["bleu"]["fairseq-interactive"]
        assert "lmfusion translate --int8" in figures["seconds"]
        assert all(seconds > 0 for spread in figures["seconds"].values() for seconds in spread["values"])
    assert cells(found["tables"][0], "time / fairseq-interactive")["fairseq-interactive"] == "1.00× (1.00–1.00)"


def test_the_loss_in_chunks_stands_beside_fairseqs_and_pytorchs(measure: Measure) -> None:
    """PyTorch's knows no label smoothing; all compute the same loss."""
    tiny = "--vocabulary 200 --channels 16 --tokens 64 --precision fp32 --rounds 1 --threads 1 --no-memory"
    found = measure("chunked_loss", f"{tiny} --smoothing 0", tiny=False)["figures"]["found"][0]["losses"]
    assert {"fairseq", "chunked"} <= set(found)
    assert list(found.values()) == pytest.approx([found["fairseq"]] * len(found), rel=1e-4)
    assert list(measure("chunked_loss", tiny, tiny=False)["figures"]["found"][0]["losses"]) == ["fairseq", "chunked"]
