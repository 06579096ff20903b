"""What each row's script would run, and what its header says."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from lmfusion.fusion.combinations import check_combination
from lmfusion.report import page

RECIPES = Path(__file__).parents[4] / "recipes"
PUBLISHED = json.loads((Path(page.__file__).parent / "published.json").read_text(encoding="utf-8"))
ELMO = "--{0}-lm {1} --{0}-elmo-dropout 0.2 --{0}-elmo-affine"
CLOZE, CAUSAL = "runs/paper/lm/en_cloze.pt", "runs/paper/lm/de_causal.pt"
ROWS = {
    "baseline": "--arch lmfusion_wmt_en_de_big",
    "shared": "--arch lmfusion_wmt_en_de_big --share-all-embeddings",
    "baseline_bitext_bpe": "--arch lmfusion_wmt_en_de_big",
    "shared_bitext_bpe": "--arch lmfusion_wmt_en_de_big --share-all-embeddings",
    "src_elmo": f"--arch src_elmo_wmt_en_de_big {ELMO.format('src', CLOZE)}",
    "src_elmo_shdemb": f"--arch src_elmo_wmt_en_de_big {ELMO.format('src', CLOZE)} --share-decoder-input-output-embed",
    "src_ft": f"--arch src_ft_wmt_en_de_big --src-lm {CLOZE} --src-representation-dropout 0.2 --encoder-layers 6",
    "tgt_elmo": f"--arch tgt_elmo_wmt_en_de_big {ELMO.format('tgt', CAUSAL)}",
    "tgt_ft": f"--arch tgt_ft_wmt_en_de_big --tgt-lm {CAUSAL} --tgt-representation-dropout 0.2",
}
PUBLISHED_ROWS = [*"baseline shared shared_bitext_bpe src_elmo src_ft tgt_elmo tgt_ft src_elmo_shdemb".split()]
LAUNCHED = sorted(path for path in RECIPES.glob("*/[a-z]*.sh") if path.parent.name in {"lm", "cnn_dm"})
LAUNCHED += sorted(RECIPES.glob("wmt18_*/[a-z]*.sh"))


def between(command: list[str], first: str, last: str) -> str:
    return " ".join(command[command.index(first) : command.index(last)])


@pytest.mark.parametrize("row", ROWS)
def test_each_row_adds_its_flags_to_the_same_training(row: str, scripts: Any, configure: Any) -> None:
    """Against the baseline's command: everything else is word for word the same, but for where things lie."""
    command = scripts.training(f"wmt18_ende/{row}", "--gpus", "8")
    assert between(command, "--arch", "--dropout") == ROWS[row]
    own_bpe = row.endswith("bitext_bpe")
    data, spm = command[command.index("fairseq-train") + 1], command[-1]
    assert data == f"data/wmt18_ende/bitext-{'bpe-' if own_bpe else ''}160K"
    assert spm == (f"{data}/spm.model" if own_bpe else "data/wmt18_ende/spm.model")
    baseline = scripts.training("wmt18_ende/baseline", "--gpus", "8")
    rest = {}
    for name, words in ((row, command), ("baseline", baseline)):
        text = between(words, "--dropout", "--sentencepiece-model")
        assert text.count(f"/{name}/checkpoints") == 1
        rest[name] = text.replace(f"/{name}/", "/ROW/")
    assert rest[row] == rest["baseline"]
    model = configure(command).model
    check_combination(model)
    assert (model.dropout, model.attention_dropout) == (0.3, 0.1)  # of the released command and its architecture


def test_the_other_folders_have_the_same_rows(scripts: Any, configure: Any) -> None:
    for folder, arch in (("wmt18_entr", "_wmt_en_de_big"), ("cnn_dm", "")):
        command = scripts.training(f"{folder}/src_elmo_shdemb", "--gpus", "8")
        lm = "runs/paper/lm/cnn_dm_cloze.pt" if folder == "cnn_dm" else CLOZE
        expected = f"--arch src_elmo{arch} {ELMO.format('src', lm)} --share-decoder-input-output-embed"
        assert between(command, "--arch", "--dropout") == expected
        model = configure(command).model
        assert (model.encoder_layers, model.decoder_layers) == (6, 6)
        assert model.encoder_embed_dim == (512 if folder == "cnn_dm" else 1024)


@pytest.mark.parametrize(
    ("gpus", "updates"),
    [
        ("128", [10_000, 10_000, 15_000, 20_000, 25_000, 30_000]),
        ("8", [10_000, 20_000, 40_000, 80_000, 120_000, 200_000]),
    ],
)
def test_larger_bitexts_are_trained_on_longer(gpus: str, updates: list[int], scripts: Any) -> None:
    """From 10K updates to the released recipe's 30K with 128 GPUs, or to the paper's 200K with 8."""
    sizes = ("160K", "320K", "640K", "1280K", "2560K", "5186K")
    commands = [scripts.training("wmt18_ende/shared", "--bitext", size, PAPER_GPUS=gpus) for size in sizes]
    assert [int(command[command.index("--max-update") + 1]) for command in commands] == updates
    data = [command[command.index("fairseq-train") + 1] for command in commands]
    assert data == [f"data/wmt18_ende/bitext-{size}" for size in sizes]


def test_translations_come_from_averaged_checkpoints_with_beam_5_on_every_newstest(scripts: Any) -> None:
    commands = scripts.commands("wmt18_ende/tgt_ft", "--gpus", "8", program="fairseq-generate")
    subsets = [command[command.index("--gen-subset") + 1] for command in commands]
    assert subsets == ["test", *(f"test{number}" for number in range(1, 7))]
    for command in commands:
        assert command[command.index("--beam") + 1] == "5"
        assert command[command.index("--path") + 1].endswith("/tgt_ft/checkpoints/checkpoint_average.pt")
    scored = scripts.commands("wmt18_ende/tgt_ft", program="lmfusion.runs.hypotheses")
    years = [int(command[command.index("--data-set") + 1].removeprefix("newstest")) for command in scored]
    assert years == [2018, *range(2012, 2018)]
    for year, command in zip(years, scored):
        assert command[command.index("--reference") + 1] == f"data/wmt18_ende/text/newstest{year}.de"


def test_turkish_is_developed_on_newstest2017_and_tested_on_newstest2018(scripts: Any) -> None:
    scored = scripts.commands("wmt18_entr/src_elmo", program="lmfusion.runs.hypotheses")
    pairs = [(c[c.index("--data-set") + 1], c[c.index("--reference") + 1]) for c in scored]
    text = "data/wmt18_entr/text"
    assert pairs == [("newstest2018", f"{text}/test.tr"), ("newstest2017", f"{text}/valid.tr")]


def test_summaries_are_cut_limited_and_scored_sentence_by_sentence(scripts: Any) -> None:
    (command,) = scripts.commands("cnn_dm/baseline", program="fairseq-generate")
    text = " ".join(command)
    assert "--truncate-source --max-source-positions 1024" in text
    assert "--min-len 60 --max-len-a 0 --max-len-b 140 --lenpen 1 --no-repeat-ngram-size 3" in text
    (score,) = scripts.commands("cnn_dm/baseline", program="lmfusion.runs.hypotheses")
    assert " ".join(score).endswith("--reference data/cnn_dm/text/test.summary --metric rouge --sentence-marker ¶")
    (lead,) = scripts.commands("cnn_dm/lead3", program="data-prep/lead.py")
    assert " ".join(lead[2:]) == "data/cnn_dm/text/test.article --sentences 3 --sentence-marker ¶"


def test_a_dry_run_leaves_nothing_behind_and_tells_what_is_missing(scripts: Any) -> None:
    runs = scripts.folder / "runs"
    before = sorted(scripts.folder.rglob("*"))
    shown = scripts.dry("wmt18_ende/src_ft", "--runs", str(runs), "--data", "nowhere")
    assert sorted(scripts.folder.rglob("*")) == before
    assert f"# missing: {runs}/lm/en_cloze.pt. Pretrain it: bash recipes/lm/en_cloze.sh." in shown
    make = "bash data-prep/wmt18_ende.sh --out nowhere --subsets 160K"
    assert f"# missing: nowhere/wmt18_ende/bitext-160K. Make it: {make}" in shown
    assert "checkpoint.best_loss_*.pt --out" in shown


def test_training_only_stops_before_the_test_sets(scripts: Any) -> None:
    shown = scripts.dry("wmt18_ende/baseline", "--train-only")
    assert "fairseq-train" in shown
    assert "fairseq-generate" not in shown
    assert "average" not in shown


def test_all_rows_of_a_folder_are_shown_one_after_the_other(scripts: Any) -> None:
    shown = scripts.dry("wmt18_ende/all", "--bitext", "640K")
    assert re.findall(r"^== (\w+)$", shown, re.M) == PUBLISHED_ROWS
    assert shown.count("bitext-640K -s en") == 7 * (1 + 7), "a training and seven test sets for each of seven rows"
    assert shown.count("bitext-bpe-640K -s en") == 1 + 7


@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_script_says_what_it_needs_takes_and_should_give(path: Path, scripts: Any) -> None:
    shown = scripts.run(f"{path.parent.name}/{path.stem}", "--help")
    assert shown.returncode == 0
    heads = re.findall(r"^(\w+): {2,}\S", shown.stdout, re.M)
    assert heads == ["Needs", "Launch", "Takes", "Expect", "Paper"]
    assert "--dry-run" in shown.stdout
    assert path.stem == "lead3" or f"recipes/slurm.sbatch recipes/{path.parent.name}/{path.stem}.sh" in shown.stdout


@pytest.mark.parametrize("row", PUBLISHED_ROWS)
def test_headers_have_the_published_figures(row: str, scripts: Any) -> None:
    name = {"baseline": "baseline", "shared_bitext_bpe": "SHARED+bitext-BPE"}.get(row, row.upper().replace("_", "-"))
    name = name.replace("-SHDEMB", "+SHDEMB")
    figures = PUBLISHED["translation"]["en-de"]["rows"][name]
    shown = scripts.run(f"wmt18_ende/{row}", "--help").stdout
    said = [(float(last), float(average)) for last, average in re.findall(r"(\d+\.\d)/(\d+\.\d)", shown)]
    assert [last for last, _ in said] == [values[-1] for values in figures.values()]
    for (_, average), values in zip(said, figures.values()):
        assert average == pytest.approx(statistics.fmean(values), abs=0.0501)
    others = {"wmt18_entr": PUBLISHED["translation"]["en-tr"], "cnn_dm": PUBLISHED["summarization"]["cnn_dm"]}
    for folder, place in others.items():
        if name in place["rows"] and (RECIPES / folder / f"{row}.sh").exists():
            values = place["rows"][name]
            text = scripts.run(f"{folder}/{row}", "--help").stdout
            wanted = values["208000"] if isinstance(values, dict) else values
            assert all(f"{value:.1f}" in text or f"{value:.2f}" in text for value in wanted)


def test_the_row_without_figures_of_its_own_says_how_far_a_bpe_of_the_bitext_is_behind(scripts: Any) -> None:
    rows = PUBLISHED["translation"]["en-de"]["rows"]
    pairs = zip(rows["SHARED"].values(), rows["SHARED+bitext-BPE"].values())
    behind = [statistics.fmean(joint) - statistics.fmean(own) for joint, own in pairs]
    shown = scripts.run("wmt18_ende/baseline_bitext_bpe", "--help").stdout
    assert f"{min(behind):.1f} to {max(behind):.1f} BLEU below SHARED" in shown
