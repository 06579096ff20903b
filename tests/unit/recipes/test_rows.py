"""The folders with a script per row: same rows, same budget, and each row's few flags, with a stub for Python."""

from __future__ import annotations

import difflib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from study.task import TASKS

from lmfusion.consumers.lstm_config import check_flags
from lmfusion.fusion.combinations import check_combination
from lmfusion.inspection import inspect_checkpoint
from lmfusion.rows.amounts import TABLE

RECIPES = Path(__file__).parents[3] / "recipes"
PACKAGE = RECIPES.parent / "lmfusion"
FOLDERS = ["debian_ende", "debian_synopsis"]
CLOZE, CAUSAL = "pretrained/en-cloze.pt", {"debian_ende": "pretrained/de-causal.pt"}
NUMBERS = {"ELMO_DROPOUT": "0.1", "ELMO_SCALE": "1.5", "FT_SCALE": "0.5", "FT_DROPOUT": "0.3"}
FROZEN = "--{0}-elmo-dropout 0.1 --{0}-elmo-affine --{0}-embed-scale 1.5"
ROWS = {
    "baseline": "--arch lmfusion_tiny",
    "shared": "--arch lmfusion_tiny --share-all-embeddings",
    "src_elmo": "--arch src_elmo_tiny --src-lm CLOZE " + FROZEN.format("src"),
    "src_elmo_shdemb": f"--arch src_elmo_tiny --src-lm CLOZE {FROZEN.format('src')} --share-decoder-input-output-embed",
    "src_ft": "--arch src_ft_tiny --src-lm CLOZE --src-embed-scale 0.5 --src-representation-dropout 0.3",
    "tgt_elmo": "--arch tgt_elmo_tiny --tgt-lm CAUSAL " + FROZEN.format("tgt"),
    "tgt_ft": "--arch tgt_ft_tiny --tgt-lm CAUSAL --tgt-embed-scale 0.5 --tgt-representation-dropout 0.3",
}
LSTMS = {
    "lstm": "",
    "lstm_shdemb": "--share-decoder-input-output-embed",
    "lstm_src_elmo": "--src-fusion elmo --src-lm CLOZE --src-elmo-dropout 0.1 --src-elmo-affine",
    "lstm_src_elmo_shdemb": "--src-fusion elmo --src-lm CLOZE --src-elmo-dropout 0.1 --src-elmo-affine "
    "--share-decoder-input-output-embed",
}
FAMILIES = ("bilm", "recurrent", "causal", "skipgram", "cbow")
EARLIER = (*(f"src_elmo_{kind}" for kind in FAMILIES), *(f"src_ft_{kind}" for kind in FAMILIES[:-1]), *LSTMS)
"""Rows of the years before, which are in the first folder alone, as are those with BERT."""
BERT_ROWS = ("src_elmo_bert", "src_ft_bert")
# Further ways to use the same language models, which debian_ende has rows of.
RIVALS = {
    "src_attend": "--arch lmfusion_tiny --src-fusion attend --src-lm CLOZE --src-attend-dropnet 1.0",
    "tgt_cold": "--arch lmfusion_tiny --tgt-fusion cold --tgt-lm CAUSAL",
    "tgt_deep": "--arch lmfusion_tiny --tgt-fusion deep --tgt-lm CAUSAL",
    "tgt_lm_prior": "--arch lmfusion_tiny --criterion lm_prior --prior-lm CAUSAL --prior-weight 0.5 "
    "--prior-temperature 2",
    "src_initialise": "--arch lmfusion_tiny --src-fusion initialise --src-lm CLOZE",
    "tgt_initialise": "--arch lmfusion_tiny --tgt-fusion initialise --tgt-lm CAUSAL --share-decoder-input-output-embed",
    "src_tgt_initialise": "--arch lmfusion_tiny --src-fusion initialise --src-lm CLOZE --tgt-fusion initialise "
    "--tgt-lm CAUSAL --share-decoder-input-output-embed",
}
PREFIX_LMS = {"prefix_lm": "--arch prefix_lm", "prefix_lm_causal": "--arch prefix_lm --prefix-lm CAUSAL"}
SECOND_STAGES = {"src_attend_second": "src_attend", "tgt_deep_second": "tgt_deep"}
"""Rows that start from the baseline, and the same ones from scratch."""
DENOISING = {
    "denoising": ("shared", [], "denoiser"),
    "lstm_denoising": ("lstm", ["--share-all-embeddings"], "lstm_denoiser"),
}
"""Rows that start from a denoiser: the row without, further ties, the denoiser's run folder."""
BACK_TRANSLATED = {
    "back_translation": "baseline",
    "shared_back_translation": "shared",
    "lstm_back_translation": "lstm",
    "back_translation_src_elmo_shdemb": "src_elmo_shdemb",
}
"""Rows that learn from back-translations, and the same ones without."""
MADE_UP = (*BACK_TRANSLATED, "self_training", "copied", "distill")
"""Rows that train on more pairs than the corpus has."""
# Answers the question for the device, notes every other command, and fails where $FAIL is among the words.
STUB = r"""#!/bin/sh
case "$*" in *'print("device"'*) echo "device 0 $PACKAGE"; exit 0 ;; esac
for word in "$@"; do printf '%s\037' "$word"; done >>"$CALLS"
echo >>"$CALLS"
case " $* " in *" $FAIL "*) exit 3 ;; esac
"""


def scripts(folder: str) -> dict[str, str]:
    """The text of every script of a folder, by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in (RECIPES / folder).glob("*.sh")}


def delta(script: str) -> list[str]:
    """What a row says beyond its first lines."""
    return script.split('_corpus.sh"\n\n', 1)[1].splitlines()


@dataclass
class Recipes:
    """Runs scripts of a folder with a stub in place of Python."""

    out: Path
    environment: dict[str, str]

    def run(self, script: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", RECIPES / script, *words],
            env={**self.environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[list[str]]:
        """The commands so far, without Python's own option -P."""
        lines = (self.out / "calls").read_text(encoding="utf-8").splitlines()
        return [[word for word in line.split("\037")[:-1] if word != "-P"] for line in lines]

    def command(self, name: str, step: str) -> list[str]:
        """The fairseq command of a run folder's step."""
        head = ["-m", "lmfusion.runs.live", str(self.out / name), step]
        (call,) = [call for call in self.calls() if call[:4] == head]
        return call[call.index("--") + 1 :]


@pytest.fixture
def recipes(tmp_path: Path) -> Recipes:
    stub = tmp_path / "bin" / "python"
    stub.parent.mkdir()
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    text = tmp_path / "data" / "text"
    text.mkdir(parents=True)
    for side in ("en", "de", "description", "synopsis"):
        (text / f"test.{side}").write_text("one line\n", encoding="utf-8")
    path = f"{stub.parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "NO_SETUP": "1", "OUT": str(tmp_path), "CALLS": str(tmp_path / "calls")}
    own.update(FAIL="nothing", PACKAGE=str(PACKAGE))
    return Recipes(tmp_path, {**os.environ, **own})


def test_both_folders_have_the_papers_rows() -> None:
    names = [set(scripts(folder)) for folder in FOLDERS]
    beyond = {
        *EARLIER,
        *BERT_ROWS,
        *RIVALS,
        *PREFIX_LMS,
        *MADE_UP,
        *SECOND_STAGES,
        *DENOISING,
        "reverse",
        "tgt_shallow",
        "rivals",
        "shared_bitext_bpe",
        "lm_quality",
    }
    assert names[0] == {*ROWS, *beyond, "all", "study", "_corpus"}
    further = {"src_attend", "denoising", "lstm", "lstm_src_elmo", "lstm_src_elmo_shdemb"}
    assert names[1] == names[0] - beyond | {"lead", "whole", *further}, "both sides are English"
    for name in (*ROWS, *further - {"denoising"}):
        assert scripts(FOLDERS[0])[name] == scripts(FOLDERS[1])[name], "the experiment is the same"


def test_the_second_pairs_rows_are_those_of_the_first_and_say_what_has_to_be_made_before(
    recipes: Recipes, tmp_path: Path
) -> None:
    second, first = scripts("debian_enfr"), scripts("debian_ende")
    rows = set(second) - {"_corpus", "study", "pretrain"}
    assert rows == set(TASKS["debian_enfr"].rows)
    assert {row: second[row] for row in rows} == {row: first[row] for row in rows}
    corpus, models = tmp_path / "en-fr", tmp_path / "models"
    made = {"CORPUS": str(corpus), "PRETRAINED": str(models)}
    for path, missing in ((corpus, "build.py --lang fr"), (models, "bash recipes/debian_enfr/pretrain.sh")):
        assert f"{missing}" in recipes.run("debian_enfr/baseline.sh", **made).stderr
        path.mkdir()
    for name in ("en-cloze.pt", "spm.model", "dict.txt"):
        (models / name).touch()
    assert recipes.run("debian_enfr/src_elmo_shdemb.sh", **made).returncode == 0
    command = " ".join(recipes.command("src_elmo_shdemb", "train"))
    assert "-s en -t fr" in command
    assert f"--src-lm {models}/en-cloze.pt" in command


def test_rows_of_ones_own_text_are_those_of_the_corpus() -> None:
    own, corpus = scripts("own"), scripts("debian_ende")
    with_an_lm_of_their_own = {*DENOISING, *BERT_ROWS, "reverse"}
    rows = set(own) & set(corpus) - {"_corpus", *with_an_lm_of_their_own}
    assert rows >= {*ROWS, *LSTMS, *RIVALS, *PREFIX_LMS}
    assert {name: own[name] for name in rows} == {name: corpus[name] for name in rows}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_row_is_a_few_lines_and_two_rows_differ_in_a_few(folder: str) -> None:
    texts = scripts(folder)
    for name in ROWS:
        assert len(delta(texts[name])) <= 3, name
        assert texts[name].splitlines()[1].startswith("# "), "says what the row is"
        changed = difflib.unified_diff(texts["baseline"].splitlines(), texts[name].splitlines(), n=0)
        added = [line for line in changed if re.match(r"\+(?!\+)", line)]
        assert len(added) <= 4, name


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_a_row_beyond_the_papers_adds_its_flags_too(name: str, recipes: Recipes) -> None:
    found = []
    for row, flags in (("baseline", ROWS["baseline"]), (name, RIVALS[name])):
        done = recipes.run(f"debian_ende/{row}.sh")
        assert done.returncode == 0, done.stderr
        command = recipes.command(row, "train")
        own = flags.replace("CLOZE", CLOZE).replace("CAUSAL", CAUSAL["debian_ende"]).split()
        assert command[-len(own) :] == own
        found.append([word for word in command[: -len(own)] if word != f"{recipes.out}/{row}/checkpoints"])
        args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(command))
        check_combination(convert_namespace_to_omegaconf(args).model)
    assert found[0] == found[1], "the budget and everything else is the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", PREFIX_LMS)
def test_a_prefix_lm_has_as_many_parameters_in_its_layers_as_the_baseline(name: str, recipes: Recipes) -> None:
    for row in ("baseline", name):
        assert recipes.run(f"debian_ende/{row}.sh").returncode == 0
    command, baseline = recipes.command(name, "train"), recipes.command("baseline", "train")
    own = PREFIX_LMS[name].replace("CAUSAL", CAUSAL["debian_ende"]).split()
    assert command[-len(own) :] == own
    same = ["--criterion", "--max-update", "--lr", "--dropout", "--max-tokens", "--patience"]
    assert [command[command.index(flag) + 1] for flag in same] == [baseline[baseline.index(flag) + 1] for flag in same]
    dictionary = Dictionary.load(str(RECIPES.parent / "pretrained" / "dict.txt"))
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, cfg=None)
    layers = []
    for words in (command, baseline):
        args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(words))
        cfg = convert_namespace_to_omegaconf(args).model
        if "prefix_lm" in cfg:
            cfg.prefix_lm = None
        model = ARCH_MODEL_REGISTRY[args.arch].build_model(cfg, task)
        layers.append(sum(value.numel() for key, value in model.named_parameters() if ".layers." in key))
    assert layers[0] == pytest.approx(layers[1], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("size", sorted({(row.channels, row.layers, row.lstm_layers) for row in TABLE}))
def test_an_lstm_has_about_as_many_parameters_as_the_baseline(size: tuple[int, int, int], recipes: Recipes) -> None:
    numbers = dict(zip(("S2S_DIM", "S2S_LAYERS", "LSTM_LAYERS"), map(str, size)), S2S_FFN=str(4 * size[0]))
    dictionary = Dictionary.load(str(RECIPES.parent / "pretrained" / "dict.txt"))
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, cfg=None)
    counts = []
    for row in ("baseline", "lstm"):
        assert recipes.run(f"debian_ende/{row}.sh", **numbers).returncode == 0
        words = without_user_dir(recipes.command(row, "train"))
        args = options.parse_args_and_arch(options.get_training_parser(), words)
        model = ARCH_MODEL_REGISTRY[args.arch].build_model(convert_namespace_to_omegaconf(args).model, task)
        counts.append(sum(value.numel() for value in model.parameters()))
    assert 0.8 < counts[1] / counts[0] < 1.2


@pytest.mark.parametrize("row", DENOISING)
def test_a_denoiser_of_both_languages_has_the_sizes_of_the_row_that_starts_from_it(row: str, recipes: Recipes) -> None:
    plain, ties, name = DENOISING[row]
    for script in (plain, row):
        done = recipes.run(f"debian_ende/{script}.sh", DENOISER_UPDATES="70")
        assert done.returncode == 0, done.stderr
    without, command = (recipes.command(script, "train") for script in (plain, row))
    start = [*ties, "--finetune-from-model", f"{recipes.out}/{name}/checkpoints/checkpoint_best.pt"]
    assert command == [word.replace(f"/{plain}/", f"/{row}/") for word in without] + start
    denoiser = recipes.command(name, "train")
    (merged,) = [call for call in recipes.calls() if "lmfusion.text.merged" in call]
    assert merged[-4:-2] == [f"{recipes.out}/data/lm.en", f"{recipes.out}/data/lm.de"]
    assert merged[-1] == denoiser[1]
    found = []
    for words, task in ((denoiser, "denoising"), (command, "translation")):
        args = options.parse_args_and_arch(options.get_training_parser(task), without_user_dir(words))
        found.append(convert_namespace_to_omegaconf(args))
    sizes = [{key: value for key, value in cfg.model.items() if key != "data"} for cfg in found]
    assert sizes[0] == sizes[1]
    noise = found[0].task
    assert (noise.mask, noise.poisson_lambda, noise.mask_random, noise.replace_length) == (0.35, 3.5, 0.1, 1)
    assert (noise.mask_length, noise.sample_break_mode, noise.rotate, noise.insert) == ("span-poisson", "eos", 0, 0)
    assert found[0].optimization.max_update == 70


@pytest.mark.parametrize("row", DENOISING)
def test_a_denoiser_of_ones_own_text_is_trained_and_is_what_its_row_starts_from(row: str, recipes: Recipes) -> None:
    name, data = DENOISING[row][2], recipes.out / "data"
    own = {"DATA_DIR": str(data), "SRC": "en", "TGT": "de", "TOKENIZER": "none"}
    for script in (name, row):
        done = recipes.run(f"own/{script}.sh", **own)
        assert done.returncode == 0, done.stderr
    saved = recipes.command(name, "train")
    command = recipes.command(row, "train")
    assert command[-2:] == ["--finetune-from-model", f"{recipes.out}/{name}/checkpoints/checkpoint_best.pt"]
    assert saved[saved.index("--save-dir") + 1] == f"{recipes.out}/{name}/checkpoints"


@pytest.mark.parametrize(("rates", "rate"), [({}, "0.001"), ({"SECOND_LR": "0.0007"}, "0.0007")])
@pytest.mark.parametrize("row", SECOND_STAGES)
def test_a_second_stage_is_the_row_from_scratch_but_for_its_start_and_a_lower_rate(
    row: str, rates: dict[str, str], rate: str, recipes: Recipes
) -> None:
    first = SECOND_STAGES[row]
    for name, settings in ((first, {}), (row, rates)):
        done = recipes.run(f"debian_ende/{name}.sh", S2S_LR="0.003", **settings)
        assert done.returncode == 0, done.stderr
    expected = [word.replace(f"/{first}/", f"/{row}/") for word in recipes.command(first, "train")]
    expected[expected.index("--lr") + 1] = rate
    expected += ["--finetune-from-model", f"{recipes.out}/baseline/checkpoints/checkpoint_best.pt"]
    assert recipes.command(row, "train") == expected
    baseline = recipes.command("baseline", "train")
    assert baseline[baseline.index("--lr") + 1] == "0.003"
    steps = [call[2:4] for call in recipes.calls() if call[:2] == ["-m", "lmfusion.runs.live"]]
    assert steps[-3:] == [
        [f"{recipes.out}/{name}", step] for name, step in (("baseline", "train"), (row, "train"), (row, "generate"))
    ]


def make_synthetic_corpora(recipes: Recipes) -> None:
    """Let the stub write three training pairs where the corpus with made-up pairs is to be."""
    stub = recipes.out / "bin" / "python"
    folder = """folder="$(printf '%s' "$*" | sed 's/.*--out \\([^ ]*\\).*/\\1/')" && mkdir -p "$folder" """
    write = f"""case "$*" in *text.synthetic*) {folder} && printf '1\\n2\\n3\\n' >"$folder/train.en" ;; esac\n"""
    stub.write_text(STUB.replace("for word", f"{write}for word", 1), encoding="utf-8")


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("row", BACK_TRANSLATED)
def test_back_translation_is_the_row_without_it_on_more_pairs(row: str, given: bool, recipes: Recipes) -> None:
    """The translation comes from a baseline of the other direction, or is given."""
    make_synthetic_corpora(recipes)
    made = recipes.out / "made.en"
    made.write_text("a house\n", encoding="utf-8")
    without = BACK_TRANSLATED[row]
    for script, told in ((without, {}), (row, {"SYNTHETIC": str(made)} if given else {})):
        done = recipes.run(f"debian_ende/{script}.sh", **told)
        assert done.returncode == 0, done.stderr
    command = recipes.command(row, "train")
    data = Path(command[1])
    assert (data.name, data.parents[1]) == ("bitext-3", recipes.out / "data")
    expected = [word.replace(f"/{without}/", f"/{row}/") for word in recipes.command(without, "train")]
    moved = [
        word.replace(f"{recipes.out}/data/", f"{data.parent}/").replace("bitext-10000", "bitext-3") for word in expected
    ]
    assert command == moved
    (call,) = [call for call in recipes.calls() if "lmfusion.text.synthetic" in call]
    reverse = [call for call in recipes.calls() if call[2:4] == [f"{recipes.out}/reverse", "train"]]
    assert len(reverse) == (not given)
    assert (call[call.index("--add") + 1] == str(made)) is given
    if not given:
        assert [word for word in reverse[0] if word in ("en", "de")] == ["de", "en"]


def test_a_translation_that_is_not_there_is_named(recipes: Recipes) -> None:
    missing = str(recipes.out / "made.en")
    done = recipes.run("debian_ende/shared_back_translation.sh", SYNTHETIC=missing)
    assert done.returncode == 2
    assert missing in done.stderr


def test_the_model_of_the_other_direction_leaves_its_translation_of_plain_text(recipes: Recipes) -> None:
    for script in ("lstm", "reverse"):
        (recipes.out / script).mkdir()
        done = recipes.run(f"debian_ende/{script}.sh", TRAIN_ONLY="1", MADE_UP="3")
        assert done.returncode == 0, done.stderr
    swap = {"en": "de", "de": "en"}
    expected = [swap.get(word, word.replace("/lstm/", "/reverse/")) for word in recipes.command("lstm", "train")]
    assert recipes.command("reverse", "train") == expected
    (call,) = [call for call in recipes.calls() if call[:3] == ["-m", "lmfusion.cli", "translate"]]
    plain = Path(call[4])
    assert call[3] == f"{recipes.out}/reverse"
    with lzma.open(
        RECIPES.parent / "data-prep" / "debian" / "en-de" / "mono.train.de.xz", "rt", encoding="utf-8"
    ) as stream:
        assert plain.read_text(encoding="utf-8") == "".join(islice(stream, 3))
    assert lzma.decompress((recipes.out / "reverse" / "synthetic.xz").read_bytes()) == b"", "the stub says nothing"


def test_shallow_fusion_takes_the_weight_that_is_best_on_the_validation_set(recipes: Recipes) -> None:
    (recipes.out / "data" / "text" / "valid.de").write_text("one line\n", encoding="utf-8")
    bitext = recipes.out / "data" / "bitext-10000"
    bitext.mkdir()
    (bitext / "dict.de.txt").write_text("word 1\n", encoding="utf-8")
    scores = recipes.out / "tgt_shallow.valid" / "scores.json"
    scores.parent.mkdir()
    figures = {"weight-0.1": {"bleu": 9.5}, "weight-0.2": {"bleu": 10.1}, "weight-0.4": {"bleu": 9.9}}
    scores.write_text(json.dumps(figures), encoding="utf-8")
    stub = recipes.out / "bin" / "python"
    real = f"""case "$*" in *scores.json*) exec {sys.executable} "$@" ;; esac\n"""
    stub.write_text(STUB.replace("for word", f"{real}for word", 1), encoding="utf-8")
    done = recipes.run("debian_ende/tgt_shallow.sh", LM_WEIGHTS="0.1 0.2 0.4")
    assert done.returncode == 0, done.stderr
    for weight in ("0.1", "0.2", "0.4"):
        command = recipes.command("tgt_shallow.valid", f"weight-{weight}")
        assert command[-4:] == ["--lm-path", CAUSAL["debian_ende"], "--lm-weight", weight]
        assert command[command.index("--gen-subset") + 1] == "valid"
    command = recipes.command("tgt_shallow", "generate")
    assert command[-4:] == ["--lm-path", CAUSAL["debian_ende"], "--lm-weight", "0.2"]
    assert command[command.index("--gen-subset") + 1] == "test"
    assert command[command.index("--path") + 1] == f"{recipes.out}/baseline/checkpoints/checkpoint_best.pt"
    assert "dict.txt" not in {path.name for path in bitext.iterdir()}, "other runs recorded these files"


@pytest.mark.parametrize("folder", [FOLDERS[0], pytest.param(FOLDERS[1], marks=pytest.mark.slow)])
def test_each_row_adds_its_flags_to_the_same_training(folder: str, recipes: Recipes) -> None:
    causal = CAUSAL.get(folder, f"{recipes.out}/causal.en/checkpoints/checkpoint_best.pt")
    common = set()
    for name, flags in ROWS.items():
        done = recipes.run(f"{folder}/{name}.sh", **NUMBERS)
        assert done.returncode == 0, done.stderr
        command = recipes.command(name, "train")
        own = flags.replace("CLOZE", CLOZE).replace("CAUSAL", causal).split()
        assert command[-len(own) :] == own
        rest = command[: -len(own)]
        assert rest.count(f"{recipes.out}/{name}/checkpoints") == 1
        common.add(tuple(word for word in rest if word != f"{recipes.out}/{name}/checkpoints"))
        args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(command))
        check_combination(convert_namespace_to_omegaconf(args).model)
    assert len(common) == 1, "the budget and everything else is the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", EARLIER)
def test_a_row_of_the_years_before_trains_in_the_same_way(name: str, recipes: Recipes, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for file in ("en-elmo.pt", "en-recurrent.pt", "en-causal.pt", "en-skipgram.vec", "en-cbow.vec"):
        (earlier / file).touch()
    for row in ("baseline", name):
        done = recipes.run(f"debian_ende/{row}.sh", EARLIER=str(earlier), **NUMBERS)
        assert done.returncode == 0, done.stderr
    command, baseline = recipes.command(name, "train"), recipes.command("baseline", "train")
    args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(command))
    flags = convert_namespace_to_omegaconf(args).model
    assert flags.encoder_embed_dim == flags.decoder_embed_dim == 192
    if name in LSTMS:
        check_flags(flags)
        own = f"--arch lstm_lmfusion {LSTMS[name]}".replace("CLOZE", CLOZE).split()
        assert command[-len(own) :] == own
    else:
        check_combination(flags)
        assert command[: baseline.index("--save-dir")] == baseline[: baseline.index("--save-dir")]
        assert flags.src_lm.startswith(str(earlier))


@pytest.mark.parametrize(
    ("kind", "targets"), [("elmo", ["future", "past"]), ("recurrent", ["future"]), ("causal", ["future"])]
)
def test_an_lm_to_be_compared_is_as_large_as_the_cloze_lm(kind: str, targets: list[str], recipes: Recipes) -> None:
    done = recipes.run("pretrain_earlier.sh", kind, str(recipes.out))
    assert "export" in recipes.calls()[-1], done.stderr
    command = recipes.command(f"{kind}.en", "train")
    args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(command))
    cfg = convert_namespace_to_omegaconf(args)
    dictionary = Dictionary.load(str(RECIPES.parent / "pretrained" / "dict.txt"))
    task = SimpleNamespace(targets=targets, target_dictionary=dictionary)
    model = ARCH_MODEL_REGISTRY[args.arch].build_model(cfg.model, task)
    cloze = inspect_checkpoint(RECIPES.parent / CLOZE).total
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(cloze, rel=0.05)


def without_user_dir(command: list[str]) -> list[str]:
    """A command's words without its name and --user-dir, which this process has imported already."""
    place = command.index("--user-dir")
    return [*command[1:place], *command[place + 2 :]]


def test_synopses_are_cut_limited_and_scored_by_rouge(recipes: Recipes) -> None:
    done = recipes.run("debian_synopsis/baseline.sh", MAX_SOURCE="77", MIN_LEN="5", MAX_LEN="21")
    assert done.returncode == 0, done.stderr
    for step in ("train", "generate"):
        command = " ".join(recipes.command("baseline", step))
        assert "--truncate-source --max-source-positions 77" in command
        assert "--tokenizer moses_monolingual --moses-lang en" in command
        assert "-s description -t synopsis" in command
    assert "--min-len 5 --max-len-a 0 --max-len-b 21 --lenpen 1 --no-repeat-ngram-size 3" in command
    assert " ".join(recipes.calls()[-1]).endswith(
        f"--reference {recipes.out}/data/text/test.synopsis --target-lang synopsis --metric rouge"
    )


def test_whole_descriptions_have_the_learning_rate_of_the_lowest_loss_and_one_denoiser(recipes: Recipes) -> None:
    stub = recipes.out / "bin" / "python"
    last = """case "$*" in *lowest_loss.py*) for word in "$@"; do :; done; echo "$word"; exit 0 ;; esac\n"""
    stub.write_text(STUB.replace("for word", f"{last}for word", 1), encoding="utf-8")
    done = recipes.run("debian_synopsis/whole.sh", ROWS="lead denoising", RATES="0.001 0.004", LM_DIM="64")
    assert done.returncode == 0, done.stderr
    steps = [call[2:4] for call in recipes.calls() if call[:2] == ["-m", "lmfusion.runs.live"]]
    low, high = (str(recipes.out / f"rate-{rate}") for rate in ("0.001", "0.004"))
    trained = [[f"{low}/denoiser", "train"], [f"{low}/denoising", "train"], [f"{high}/denoising", "train"]]
    assert steps == [[f"{low}/lead", "generate"], *trained, trained[-1], [f"{high}/denoising", "generate"]]
    head = ["-m", "lmfusion.runs.live", f"{high}/denoising", "train"]
    for command in (call for call in recipes.calls() if call[:4] == head):
        assert command[command.index("--finetune-from-model") + 1] == f"{low}/denoiser/checkpoints/checkpoint_best.pt"
        assert command[command.index("--lr") + 1] == "0.004"
        assert command[command.index("--max-source-positions") + 1] == "512"
    assert recipes.calls()[-1] == ["recipes/rates_table.py", str(recipes.out)]
    assert "no nowhere.sh" in recipes.run("debian_synopsis/whole.sh", ROWS="nowhere").stderr


def test_translations_are_neither_cut_nor_limited(recipes: Recipes) -> None:
    assert recipes.run("debian_ende/baseline.sh").returncode == 0
    words = [word for step in ("train", "generate") for word in recipes.command("baseline", step)]
    assert not {"--truncate-source", "--max-len-b", "--no-repeat-ngram-size"} & set(words)
    assert "--metric" not in recipes.calls()[-1]


def test_the_english_causal_lm_is_pretrained_once_for_both_rows(recipes: Recipes) -> None:
    for row in ("tgt_elmo", "tgt_ft"):
        assert recipes.run(f"debian_synopsis/{row}.sh").returncode == 0
    prepared = [call[-2:] for call in recipes.calls() if call[0].endswith("prepare.py")]
    assert prepared.count(["--lm-langs", "en"]) == 2
    trained = [call for call in recipes.calls() if call[2:4] == [f"{recipes.out}/causal.en", "train"]]
    assert trained[0] == trained[1], "so that the second finds the first one's run finished"
    assert f"{recipes.out}/data/lm.en" in trained[0]
    assert "uni_transformer_lm" in trained[0]
    assert "--self-target" not in trained[0]


@pytest.mark.parametrize("row", BERT_ROWS)
def test_a_row_with_bert_is_the_row_with_the_cloze_lm_but_for_the_lm_and_its_rate(recipes: Recipes, row: str) -> None:
    for name in (row, row.removesuffix("_bert")):
        assert recipes.run(f"debian_ende/{name}.sh", **NUMBERS).returncode == 0
    plain = " ".join(recipes.command(row.removesuffix("_bert"), "train"))
    bert = f"{recipes.out}/bert.en/checkpoints/checkpoint_best.pt"
    expected = plain.replace(CLOZE, bert).replace(f"/{row.removesuffix('_bert')}/", f"/{row}/")
    rate = " --src-lm-lr-scale 0.1" if row == "src_ft_bert" else ""
    assert rate in (found := " ".join(recipes.command(row, "train")))
    assert found.replace(rate, "") == expected
    trained = recipes.command("bert.en", "train")
    assert trained[1] == f"{recipes.out}/data/documents.en"
    args = options.parse_args_and_arch(options.get_training_parser("bert_pretraining"), without_user_dir(trained))
    assert (args.arch, args.criterion, args.decoder_layers, args.nsp_weight) == ("bert_lm", "bert_pretraining", 4, 1.0)


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_goes_on_after_a_failed_row_and_ends_in_the_table(folder: str, recipes: Recipes) -> None:
    done = recipes.run(f"{folder}/all.sh", FAIL="src_elmo")
    assert done.returncode == 2
    assert "failed: src_elmo." in done.stderr
    table = recipes.calls()[-1]
    assert table[1] == "lmfusion.report.table"
    names = [Path(word).name for word in table[2 : table.index("--save")]]
    assert sorted(names) == sorted({*ROWS, "lead"} if folder == "debian_synopsis" else ROWS)
    assert recipes.command("tgt_ft", "train"), "a row after the failed one"


def test_an_interrupted_row_ends_all(recipes: Recipes) -> None:
    stub = recipes.out / "bin" / "python"
    stub.write_text(STUB.replace("exit 3", "exit 130"), encoding="utf-8")
    done = recipes.run("debian_ende/all.sh", FAIL="shared")
    assert done.returncode == 130
    assert "lmfusion.report.table" not in json.dumps(recipes.calls())


def test_settings_are_chosen_without_the_test_set_and_prepared_data_and_states_can_be_shared(recipes: Recipes) -> None:
    shared = recipes.out / "shared"
    shutil.copytree(recipes.out / "data", shared)
    done = recipes.run("debian_ende/src_elmo.sh", TRAIN_ONLY="1", DATA_DIR=str(shared), SRC_LM_CACHE="states")
    assert done.returncode == 0, done.stderr
    command = recipes.command("src_elmo", "train")
    assert f"{shared}/bitext-10000" in command
    assert command[-3:] == ["--src-lm-cache", "states", "--src-lm-cache-half"]
    assert not any("fairseq-generate" in call or "lmfusion.runs.hypotheses" in call for call in recipes.calls())
    assert not any(str(recipes.out / "data") in word for call in recipes.calls() for word in call)


def test_rows_of_one_folder_share_their_numbers(recipes: Recipes) -> None:
    assert recipes.run("debian_ende/baseline.sh").returncode == 0
    other = recipes.run("debian_ende/src_ft.sh", S2S_UPDATES="7")
    assert other.returncode == 2
    assert re.search(r"< S2S_UPDATES=\d+ > S2S_UPDATES=7", other.stderr)
    assert "Choose another OUT=FOLDER, or delete it." in other.stderr


def test_options_are_refused_and_help_is_given(recipes: Recipes) -> None:
    refused = recipes.run("debian_ende/src_ft.sh", "--updates", "9")
    assert refused.returncode == 2
    assert "--updates: src_ft.sh takes no options. Set numbers in the environment" in refused.stderr
    shown = recipes.run("debian_ende/src_ft.sh", "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith("SRC-FT: ")
    missing = recipes.run("debian_ende/src_ft.sh", PRETRAINED="nowhere")
    assert missing.returncode == 2
    assert "nowhere/en-cloze.pt: no such file" in missing.stderr


def test_rows_with_a_model_of_hugging_face_pretrain_it_and_read_its_pieces(recipes: Recipes) -> None:
    assert recipes.run("huggingface/src_ft.sh", BERT_LAYERS="3").returncode == 0
    calls, bert = recipes.calls(), f"{recipes.out}/bert"
    (pretraining,) = [call for call in calls if call[0] == "recipes/huggingface/pretrain_bert.py"]
    assert pretraining[pretraining.index("--out") + 1] == bert
    assert pretraining[pretraining.index("--layers") + 1] == "3"
    (prepared,) = [call for call in calls if call[0].endswith("data-prep/prepare.py")]
    assert prepared[prepared.index("--src-hf") + 1] == bert
    train, generate = (recipes.command("src_ft", step) for step in ("train", "generate"))
    text = [*("--bpe", "lmfusion", "--src-bpe", f"pieces:{recipes.out}/data/pieces.en.json")]
    text += ["--tgt-bpe", f"sentencepiece:{recipes.out}/data/spm.model", "--tgt-moses", "de"]
    for command in (train, generate):
        begin = command.index("--bpe")
        assert command[begin : begin + len(text)] == text
        assert not {"--tokenizer", "--sentencepiece-model"} & set(command)
    assert train[train.index("--src-lm") + 1] == bert
    args = options.parse_args_and_arch(options.get_training_parser(), without_user_dir(train))
    assert check_combination(convert_namespace_to_omegaconf(args).model) is None


def test_a_model_one_has_already_is_not_pretrained(recipes: Recipes) -> None:
    assert recipes.run("huggingface/src_elmo.sh", SRC_LM="xlm-r").returncode == 0
    assert not [call for call in recipes.calls() if call[0].endswith("pretrain_bert.py")]
    assert "xlm-r" in recipes.command("src_elmo", "train")
