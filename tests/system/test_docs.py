"""Command lines of docs/, run as they are written; those of the README are among them.

What a page leaves to its reader stands as "…" there and is tiny here; so are minutes. Lines that only fetch something
from the network are left out.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.text.textio import read_lines

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "data-prep" / "debian" / "en-de"
SENTENCES = Path("data-prep") / "debian" / "sentences"
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
FETCHING = ("pip install", "hf download", "bash ")
TRAIN = "--cpu --optimizer adam --lr 0.001 --max-tokens 500 --max-update 2 --num-workers 0 --log-format json "
SMALL_LM = TRAIN + "--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2 --decoder-layers 1 "
RECURRENT = TRAIN + "--decoder-embed-dim 16 --decoder-layers 1 "
LSTM = TRAIN + "--encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-out-embed-dim 16 -s en -t de "
SMALL = TRAIN + "--criterion label_smoothed_cross_entropy --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 "
SMALL += "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-output-dim 16 "
SMALL += "--encoder-attention-heads 2 --decoder-attention-heads 2 -s en -t de "


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
    (place / "pretrained").symlink_to(ROOT / "pretrained")
    (place / "docs").symlink_to(ROOT / "docs")
    (place / "en-cloze.pt").symlink_to(ROOT / "pretrained" / "en-cloze.pt")
    out = place / "runs" / "quickstart" / "data"
    given = "--spm pretrained/spm.model --dict pretrained/dict.txt --bitext-lines 400 --max-ratio 0"
    run(f"python {ROOT}/data-prep/prepare.py {small_corpus} -s en -t de --out {out} {given}", place)
    (out / "bitext-400").rename(out / "bitext-10000")
    (place / "DATA").mkdir()
    for name, real in (("bitext", "bitext-10000"), ("lm.en", "lm.en"), ("bpe", "bpe")):
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
    alone = TRAIN if "lmfusion_sentences" in line else RECURRENT if "recurrent" in line else SMALL_LM
    sizes = pairs if "bitext" in line else alone
    return line.replace("…", f"{sizes} --save-dir CK") + (
        " --cpu" if line.startswith("fairseq") and "…" not in line else ""
    )


def run_page(page: str, place: Path) -> None:
    """Run a page's lines in their order; a training begins anew."""
    for line in lines(page):
        if line.startswith("fairseq-train"):
            shutil.rmtree(place / "CK", ignore_errors=True)
        run(completed(line), place)


def test_fairseqs_commands_run_as_written(place: Path) -> None:
    run_page("docs/use.md", place)
    model = read_checkpoint(place / "runs" / "hydra" / "checkpoint_last.pt")["cfg"]["model"]
    assert (model["encoder_embed_dim"], model["src_elmo_dropout"]) == (64, 0.2)


def test_recurrent_models_run_as_written(place: Path) -> None:
    run_page("docs/recurrent.md", place)


def test_sentence_tasks_run_as_written(place: Path) -> None:
    """On the first rows of the embedded tasks."""
    folder = place / SENTENCES
    folder.mkdir(parents=True)
    for path in (ROOT / SENTENCES).glob("*.tsv.xz"):
        with lzma.open(folder / path.name, "wt", encoding="utf-8") as stream:
            stream.write("".join(f"{line}\n" for line in islice(read_lines(path), 41)))
    run_page("docs/sentences.md", place)
    assert len((place / "sections.tsv").read_text(encoding="utf-8").splitlines()) == 41


def test_own_parts_run_as_written(place: Path) -> None:
    run_page("docs/extending.md", place)


def test_own_text_runs_as_written(tmp_path: Path) -> None:
    """With the embedded German in the place of French."""
    for ours, theirs, count in (("train", "train", 4200), ("mono.train", "plain", 3000), ("test", "new", 5)):
        for language, name in (("en", "en"), ("de", "fr")):
            text = islice(read_lines(CORPUS / f"{ours}.{language}.xz"), count)
            (tmp_path / f"{theirs}.{name}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    texts = [
        list(islice(read_lines(CORPUS / f"synopsis.train.{side}.xz"), 2200)) for side in ("description", "synopsis")
    ]
    articles = (json.dumps({"text": text, "summary": summary}) for text, summary in zip(*texts))
    (tmp_path / "articles.jsonl").write_text("".join(f"{line}\n" for line in articles), encoding="utf-8")
    for line in lines("docs/own_text.md"):
        if line.startswith("lmfusion train"):
            line += " --set LM_UPDATES=9 S2S_UPDATES=9 LM_DIM=16 LM_FFN=16 S2S_DIM=16 S2S_FFN=16 S2S_LAYERS=1"
        run(line, tmp_path)
    assert len((tmp_path / "new.fr").read_text(encoding="utf-8").splitlines()) == 5
    assert (tmp_path / "model.lmf").is_file()
