"""What a run is, told from its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.report.page import strategy
from lmfusion.report.page.command_line import parse
from lmfusion.report.page.find import Found
from lmfusion.report.page.runs import Run


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("--arch lmfusion_tiny", "baseline"),
        ("--arch transformer_iwslt_de_en", "baseline"),
        ("--arch lmfusion_tiny --share-decoder-input-output-embed", "baseline+SHDEMB"),
        ("--arch lmfusion --share-all-embeddings", "SHARED"),
        ("--arch src_elmo_wmt_en_de_big --src-lm x.pt", "SRC-ELMO"),
        ("--arch src_elmo --share-decoder-input-output-embed", "SRC-ELMO+SHDEMB"),
        ("--arch=src_ft_tiny --src-lm=x.pt", "SRC-FT"),
        ("--arch tgt_elmo_tiny", "TGT-ELMO"),
        ("--arch lmfusion --tgt-fusion finetune --tgt-lm x.pt", "TGT-FT"),
        ("--arch lmfusion --src-fusion elmo --tgt-fusion finetune", "SRC-ELMO+TGT-FT"),
        ("--arch src_elmo_tiny --src-fusion none", "baseline"),
        ("--arch src_elmo_tiny --tgt-fusion elmo", "SRC-ELMO+TGT-ELMO"),
        ("--arch lmfusion_tiny --src-fusion attend --tgt-fusion cold", "SRC-ATTEND+TGT-COLD"),
        ("--arch lmfusion_tiny --criterion lm_prior --prior-lm x.pt", "baseline+LM-PRIOR"),
        ("--arch lmfusion_tiny --share-all-embeddings --criterion lm_prior", "SHARED+LM-PRIOR"),
        ("--arch src_elmo --criterion label_smoothed_cross_entropy", "SRC-ELMO"),
        ("--arch prefix_lm --share-decoder-input-output-embed", "PREFIX-LM"),
        ("--arch lmfusion_tiny --share-all-embeddings --finetune-from-model x.pt", "SHARED+PRETRAINED"),
        ("--arch lmfusion_tiny --share-all-embeddings --finetune-from-model a/denoiser/b/c.pt", "SHARED+DENOISING"),
        (
            "--arch lstm_lmfusion --share-all-embeddings --finetune-from-model a/lstm_denoiser/c.pt",
            "LSTM+SHARED+DENOISING",
        ),
        ("--arch lmfusion_tiny --src-fusion attend --finetune-from-model x.pt", "SRC-ATTEND+SECOND-STAGE"),
        ("--arch lmfusion_tiny --tgt-fusion deep --finetune-from-model x.pt", "TGT-DEEP+SECOND-STAGE"),
        ("--arch prefix_lm --prefix-lm x.pt", "PREFIX-LM+INITIALISE"),
        ("--arch lstm_lmfusion", "LSTM"),
        ("--arch lstm_lmfusion --share-decoder-input-output-embed", "LSTM+SHDEMB"),
        ("--arch lstm_lmfusion --src-fusion elmo --share-decoder-input-output-embed", "LSTM+SRC-ELMO+SHDEMB"),
    ],
)
def test_the_papers_names(flags: str, name: str) -> None:
    assert strategy.name(parse(f"fairseq-train data/bitext-100 -s en -t de {flags} --cpu".split())) == name


@pytest.mark.parametrize(
    ("folder", "flags", "name"),
    [
        ("back-20000.de-with-10000", "--arch lmfusion_tiny", "baseline+BACK-TRANSLATION"),
        ("back-20000.de-with-10000", "--arch src_elmo --share-decoder-input-output-embed", None),
        ("self-plain-20000.en-with-10000", "--arch lmfusion_tiny", "baseline+SELF-TRAINING"),
        ("copied-plain-20000.de-with-10000", "--arch lstm_lmfusion", "LSTM+COPIED"),
    ],
)
def test_made_up_pairs_are_named_and_do_not_count_as_pairs(folder: str, flags: str, name: str | None) -> None:
    words = f"fairseq-train OUT/data/{folder}/bitext-29876 -s en -t de {flags} --seed 3".split()
    run = Run(Found(Path("run"), "run"), record={"steps": {"train": {"command": words}}})
    assert run.pairs == 10_000
    assert run.strategy == (name or "SRC-ELMO+SHDEMB+BACK-TRANSLATION")


def test_a_flag_of_the_hydra_command_counts_as_well() -> None:
    words = "task._name=translation model._name=lmfusion model.src_fusion=elmo task.data=data/bitext-9"
    flags = parse(["fairseq-hydra-train", *words.split()])
    assert strategy.name(flags) == "SRC-ELMO"
    assert flags.data == "data/bitext-9"


def test_the_lead_baseline_is_named_by_its_number_of_sentences() -> None:
    assert strategy.name(parse("python data-prep/lead.py texts --sentences 3".split())) == "Lead-3"
    assert strategy.name(parse("python data-prep/lead.py texts".split())) == "Lead-1"


def test_rows_have_the_order_of_table_4_with_lead_before_and_others_after() -> None:
    names = ["TGT-FT+X", "SRC-ELMO+SHDEMB", "TGT-FT", "SHARED+bitext-BPE", "baseline", "Lead-3", "SRC-FT", "SHARED"]
    assert sorted(names, key=strategy.order) == [
        *("Lead-3", "baseline", "SHARED", "SHARED+bitext-BPE", "SRC-FT", "TGT-FT", "SRC-ELMO+SHDEMB", "TGT-FT+X"),
    ]


def test_settings_are_what_decides_the_outcome() -> None:
    command = "fairseq-train data --lr 0.1 --adam-betas '(0.9, 0.98)' --seed 4 --save-dir x --log-interval 9 --cpu -1"
    flags = parse(command.replace("'", "").split())
    assert flags.data == "data"
    assert flags.settings() == {"lr": "0.1", "adam-betas": "(0.9, 0.98)", "cpu": "-1"}


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("fairseq-train data", "fairseq-train"),
        ("/venv/bin/fairseq-train data", "fairseq-train"),
        ("python -m fairseq_cli.train data", "fairseq_cli.train"),
        ("/usr/bin/python3.11 data-prep/lead.py data", "lead.py"),
    ],
)
def test_the_program_is_found_past_python(command: str, program: str) -> None:
    flags = parse(command.split())
    assert (flags.program, flags.data) == (program, "data")


def test_a_language_model_that_joins_in_beam_search_is_named_with_the_pairs_of_the_model_it_joins() -> None:
    """The run trains nothing: its data folder is the baseline's, with the language model's dictionary beside it."""
    words = "fairseq-generate data/bitext-300-and-lm -s en -t de --path baseline.pt --lm-path lm.pt --lm-weight 0.1"
    record = {"steps": {"generate": {"state": "finished", "command": words.split(), "seconds": 1.0, "result": {}}}}
    run = Run(Found(Path("runs/tgt_shallow"), "tgt_shallow"), record=record)
    assert (run.strategy, run.pairs, run.has_training) == ("baseline+SHALLOW-FUSION", 300, False)
