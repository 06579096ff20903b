"""Command lines of docs/, run as they are written; those of the README are among them.

What a page leaves to its reader stands as "…" there and is tiny here; so are minutes. Lines that only fetch something
from the network are left out.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import runpy
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import sentencepiece

from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.text.textio import read_lines

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "data-prep" / "debian" / "en-de"
SENTENCES = Path("data-prep") / "debian" / "sentences"
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
save_model = runpy.run_path(str(ROOT / "tests" / "hf_models.py"))["save_model"]
FETCHING = ("pip ", "hf download", "bash ")
TRAIN = "--cpu --optimizer adam --lr 0.001 --max-tokens 500 --max-update 2 --num-workers 0 --log-format json "
SMALL_LM = TRAIN + "--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2 --decoder-layers 1 "
RECURRENT = TRAIN + "--decoder-embed-dim 16 --decoder-layers 1 "
LSTM = TRAIN + "--encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-out-embed-dim 16 -s en -t de "
SMALL = TRAIN + "--criterion label_smoothed_cross_entropy --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 "
SMALL += "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-output-dim 16 "
SMALL += "--encoder-attention-heads 2 --decoder-attention-heads 2 -s en -t de "

TINY_ROWS = " --set LM_UPDATES=9 S2S_UPDATES=9 LM_DIM=16 LM_FFN=16 S2S_DIM=16 S2S_FFN=16 S2S_LAYERS=1"


def lines(page: str) -> list[str]:
    """The command lines of a page, each on one line."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    found = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in found if line and not line.startswith(("#", *FETCHING))]


def run(line: str, folder: Path) -> str:
    """Run a line in a shell, where the commands of this environment come first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def place(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the quickstart was: DATA in the symbols of the shipped language models, which lie there, too."""
    place = tmp_path_factory.mktemp("docs")
    for name in ("pretrained", "docs", "data-prep"):
        (place / name).symlink_to(ROOT / name)
    (place / "en-cloze.pt").symlink_to(ROOT / "pretrained" / "en-cloze.pt")
    out = place / "runs" / "quickstart" / "data"
    given = "--spm pretrained/spm.model --dict pretrained/dict.txt --bitext-lines 400 --max-ratio 0"
    run(f"python {ROOT}/data-prep/prepare.py {small_corpus} -s en -t de --out {out} {given}", place)
    (out / "bitext-400").rename(out / "bitext-10000")
    (place / "DATA").mkdir()
    for name, real in (("bitext", "bitext-10000"), ("lm.en", "lm.en"), ("lm.de", "lm.de"), ("bpe", "bpe")):
        (place / "DATA" / name).symlink_to(out / real)
    symbols = (out / "bitext-10000" / "dict.de.txt").read_text(encoding="utf-8").splitlines()
    (place / "german.words").write_text("\n".join(line.split()[0] for line in symbols[::2]), encoding="utf-8")
    return place


def completed(line: str) -> str:
    """The line with the reader's own numbers."""
    if "hydra" in line:
        return f"{line} optimization.max_update=1"
    pairs = LSTM if "lstm_lmfusion" in line else SMALL
    if "translation_tasks" in line:
        pairs = pairs.replace("--criterion label_smoothed_cross_entropy ", "")
    if "--task denoising" in line:
        pairs = pairs.replace(" -s en -t de", "")
    alone = TRAIN if "lmfusion_sentences" in line else RECURRENT if "recurrent" in line else SMALL_LM
    sizes = pairs if any(word in line for word in ("bitext", "--arch src_", "--task denoising")) else alone
    return line.replace("…", f"{sizes} --save-dir CK") + (
        " --cpu" if line.startswith("fairseq") and "…" not in line else ""
    )


def run_page(page: str, place: Path) -> None:
    """Run a page's lines in their order; a training begins anew."""
    run_lines(lines(page), place)


def run_lines(given: list[str], place: Path) -> None:
    """Run lines in their order; a training begins anew."""
    for line in given:
        if line.startswith("fairseq-train"):
            shutil.rmtree(place / "CK", ignore_errors=True)
        run(completed(line), place)


def write_texts(folder: Path, files: dict[str, tuple[str, int]]) -> None:
    """Write the first lines of the embedded corpus' files: name -> name there, number of lines."""
    for name, (ours, count) in files.items():
        text = islice(read_lines(CORPUS / f"{ours}.xz"), count)
        (folder / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


def test_fairseqs_commands_run_as_written(place: Path) -> None:
    run_page("docs/use.md", place)
    model = read_checkpoint(place / "runs" / "hydra" / "checkpoint_last.pt")["cfg"]["model"]
    assert (model["encoder_embed_dim"], model["src_elmo_dropout"]) == (64, 0.2)


def test_recurrent_models_run_as_written(place: Path) -> None:
    run_page("docs/recurrent.md", place)


def test_sentence_tasks_run_as_written(place: Path, tmp_path: Path) -> None:
    """On the first rows of the embedded tasks, in a folder of their own: in ``place`` they are the repository's."""
    folder = tmp_path / SENTENCES
    folder.mkdir(parents=True)
    for name in ("pretrained", "en-cloze.pt", "DATA"):
        (tmp_path / name).symlink_to(place / name)
    for path in (ROOT / SENTENCES).glob("*.tsv.xz"):
        with lzma.open(folder / path.name, "wt", encoding="utf-8") as stream:
            stream.write("".join(f"{line}\n" for line in islice(read_lines(path), 41)))
    run_page("docs/sentences.md", tmp_path)
    assert len((tmp_path / "sections.tsv").read_text(encoding="utf-8").splitlines()) == 41


def test_second_stages_and_denoising_run_as_written(place: Path) -> None:
    given = lines("docs/rivals.md")
    denoising = next(number for number, line in enumerate(given) if "lmfusion.text.merged" in line)
    run_lines(given[:denoising], place)
    second = read_checkpoint(place / "CK" / "checkpoint_last.pt")["cfg"]
    assert (second["model"]["src_fusion"], second["checkpoint"]["finetune_from_model"]) == ("attend", "baseline.pt")
    run_lines(given[denoising:], place)
    started = read_checkpoint(place / "CK" / "checkpoint_last.pt")
    assert started["cfg"]["checkpoint"]["finetune_from_model"] == "denoiser.pt"


def test_plans_run_as_written(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for line in lines("docs/scale.md"):
        found = json.loads(run(line.replace(" -- ", " --json -- "), tmp_path))
        parameters = sum(part["parameters"] for part in found["parameters"])
        for figure in (f"{parameters:,}", f"{found['updates']:,}", f" {found['hours']:.1f} |"):
            assert figure in page


def test_own_parts_run_as_written(place: Path) -> None:
    run_page("docs/extending.md", place)


def test_own_text_runs_as_written(tmp_path: Path) -> None:
    """With the embedded German in the place of French."""
    sets = (("train", "train", 4200), ("mono.train", "plain", 3000), ("test", "new", 5))
    sides = (("en", "en"), ("de", "fr"))
    write_texts(tmp_path, {f"{to}.{name}": (f"{ours}.{side}", n) for ours, to, n in sets for side, name in sides})
    texts = [
        list(islice(read_lines(CORPUS / f"synopsis.train.{side}.xz"), 2200)) for side in ("description", "synopsis")
    ]
    articles = (json.dumps({"text": text, "summary": summary}) for text, summary in zip(*texts))
    (tmp_path / "articles.jsonl").write_text("".join(f"{line}\n" for line in articles), encoding="utf-8")
    for line in lines("docs/own_text.md"):
        if line.startswith("lmfusion train"):
            line += TINY_ROWS
        run(line, tmp_path)
    assert len((tmp_path / "new.fr").read_text(encoding="utf-8").splitlines()) == 5
    assert (tmp_path / "model.lmf").is_file()


def test_bert_runs_as_written(place: Path) -> None:
    save_model("bert", place / "bert-base-cased", head="AutoModelForPreTraining")
    for split, count in (("train", 60), ("valid", 20)):
        documents = islice(read_lines(CORPUS / f"synopsis.{split}.description.xz"), count)
        text = "\n\n".join(document.replace(". ", ".\n") for document in documents)
        (place / f"{split}.txt").write_text(text + "\n", encoding="utf-8")
    for name in ("spm.model", "dict.txt"):
        (place / name).symlink_to(ROOT / "pretrained" / name)
    sets = {f"{name}.{side}": (f"{name}.{side}", 4200) for name in ("train", "mono.train") for side in ("en", "de")}
    write_texts(place, sets)
    own = "--pairs train.en train.de --text mono.train.en mono.train.de --held-out 1000 --out own"
    run(f"lmfusion data {own}", place)
    given = lines("docs/bert.md")
    first = next(number for number, line in enumerate(given) if "--src-lm bert.pt" in line)
    run_lines(given[:first], place)
    (place / "CK" / "checkpoint_best.pt").rename(place / "bert.pt")
    for line in given[first:]:
        if " import " in line:
            (place / "bert.pt").unlink()
        if line.startswith("lmfusion train DATA"):
            line = line.split("#")[0].replace("DATA", "own") + TINY_ROWS
        run_lines([line], place)
    assert (place / "my-bert" / "model.safetensors").is_file()


def test_models_of_hugging_face_run_as_written(tmp_path: Path) -> None:
    save_model("xlm-roberta", tmp_path / "xlm-r", num_hidden_layers=12, max_position_embeddings=500)
    sets = {f"{name}.{side}": (f"{name}.{side}", 4200) for name in ("train", "mono.train") for side in ("en", "de")}
    write_texts(tmp_path, {**sets, "plain.de": ("mono.train.de", 3000), "new.en": ("test.en", 5)})
    for folder in ("text", "pieces"):
        (tmp_path / folder).mkdir()
    splits = {split: (f"{split}.en", 50) for split in ("train", "valid", "test")}
    write_texts(tmp_path / "text", {f"{split}.en": found for split, found in splits.items()})
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(ROOT / "pretrained" / "spm.model"))
    for split in splits:
        german = islice(read_lines(CORPUS / f"{split}.de.xz"), 50)
        encoded = "".join(" ".join(pieces.encode(line, out_type=str)) + "\n" for line in german)
        (tmp_path / "pieces" / f"{split}.de").write_text(encoded, encoding="utf-8")
    shutil.copyfile(ROOT / "pretrained" / "dict.txt", tmp_path / "dict.de.txt")
    shutil.copyfile(ROOT / "pretrained" / "spm.model", tmp_path / "spm.model")
    causal = tmp_path / "runs" / "mine" / "causal.de" / "checkpoints" / "checkpoint_best.pt"
    causal.parent.mkdir(parents=True)
    shutil.copyfile(ROOT / "pretrained" / "de-causal.pt", causal)
    for line in lines("docs/huggingface.md"):
        run_lines([line + TINY_ROWS if line.startswith("lmfusion train") else line], tmp_path)
    assert len((tmp_path / "new.de").read_text(encoding="utf-8").splitlines()) == 5
    assert (tmp_path / "my-lm" / "model.safetensors").is_file()
