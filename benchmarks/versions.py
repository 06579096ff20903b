"""This version beside an earlier one: training and generation by fairseq's own commands, in turn.

    lmfusion bench versions --against REVISION [--rows baseline src_elmo …] [--updates N] [--subset NAME] [--json FILE]

Both sides read the same prepared text and the same shipped language models, and train the same small models of the
paper's rows. Training time comes from the tokens a second that fairseq's trainer logs for all its updates, generation
time is what fairseq-generate prints, so that neither start nor loading counts; both generate with the weights that the
earlier one trained.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from options import flags, parse
from results import Table, report
from timing import Spread, progress

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "pretrained"
CORPUS = ROOT / "data-prep" / "debian" / "en-de"
SRC, TGT = ("--src-lm", SHIPPED / "en-cloze.pt"), ("--tgt-lm", SHIPPED / "de-causal.pt")
ROWS: dict[str, tuple[object, ...]] = {
    "baseline": ("--arch", "lmfusion_tiny"),
    "src_elmo": ("--arch", "src_elmo_tiny", *SRC),
    "src_ft": ("--arch", "src_ft_tiny", *SRC),
    "tgt_elmo": ("--arch", "tgt_elmo_tiny", *TGT),
    "tgt_ft": ("--arch", "tgt_ft_tiny", *TGT),
}
HERE = "this version"
TRAINED = re.compile(r'"train_wps": "([\d.]+)')  # target tokens a second, of all updates
GENERATED = re.compile(r"Translated [\d,]+ sentences \([\d,]+ tokens\) in ([\d.]+)s")


class Side:
    """A version in a folder, and its commands.

    Args:
        tree: the folder of the repository.
        out: for its checkpoints.
        args: the benchmark's flags.
    """

    def __init__(self, tree: Path, out: Path, args: argparse.Namespace) -> None:
        self.tree, self.out, self.args = tree, out, args

    def run(self, module: str, *words: object) -> str:
        """Run a command of fairseq with this version as plugin; returns all it printed.

        Raises:
            SystemExit: it failed.
        """
        threads = {"OMP_NUM_THREADS": str(self.args.threads), "MKL_NUM_THREADS": str(self.args.threads)}
        command = [sys.executable, "-m", module, *map(str, words), "--user-dir", str(self.tree / "lmfusion")]
        environment = {**os.environ, **threads, "PYTHONPATH": str(self.tree)}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, text=True, cwd=self.out, env=environment, check=False, **streams)  # type: ignore[call-overload]
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
        return str(done.stdout)

    def train(self, data: Path, row: str) -> float:
        """Seconds for a thousand target tokens."""
        folder = self.out / row
        settings = (
            *("--task", "translation", "--optimizer", "adam", "--lr", 0.001, "--max-tokens", 2048, "--seed", 1),
            *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--dropout", 0.2),
            *("--max-update", self.args.updates, "--log-format", "json", "--log-interval", self.args.updates),
            *("--save-dir", folder, "--disable-validation", "--no-epoch-checkpoints", "--cpu", "--num-workers", 0),
        )
        for left in folder.glob("*.pt"):
            left.unlink()
        return 1000 / float(TRAINED.findall(self.run("fairseq_cli.train", data, *ROWS[row], *settings))[-1])

    def generate(self, data: Path, checkpoint: Path) -> float:
        """Seconds of decoding a split."""
        settings = ("--path", checkpoint, "--beam", 5, "--max-len-b", self.args.symbols, "--max-tokens", 2048)
        settings += ("--quiet", "--cpu", "--gen-subset", self.args.subset, "--num-workers", 0)
        return float(GENERATED.findall(self.run("fairseq_cli.generate", data, *settings))[-1])


def prepare(out: Path, args: argparse.Namespace) -> Path:
    """The embedded corpus as the shipped language models read it."""
    given = ("--spm", SHIPPED / "spm.model", "--dict", SHIPPED / "dict.txt", "--lm-langs", "--bitext-lines", args.pairs)
    words = (CORPUS, "-s", "en", "-t", "de", "--out", out / "data", *given, "--workers", 1)
    command = [sys.executable, str(ROOT / "data-prep" / "prepare.py"), *map(str, words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out / "data" / f"bitext-{args.pairs}"


def measure(sides: dict[str, Side], data: Path, row: str, rounds: int) -> tuple[dict[str, Spread], dict[str, Spread]]:
    """Seconds of training and of generation by version."""
    found: list[dict[str, list[float]]] = [{name: [] for name in sides} for _ in range(2)]
    earlier = next(side for name, side in sides.items() if name != HERE)
    for _ in progress(range(rounds), row):
        for name, side in sides.items():
            found[0][name].append(side.train(data, row))
        for name, side in sides.items():
            found[1][name].append(side.generate(data, earlier.out / row / "checkpoint_last.pt"))
    training, generation = ({name: Spread(values) for name, values in each.items()} for each in found)
    return training, generation


def table(figures: dict[str, dict[str, dict[str, Spread]]], args: argparse.Namespace) -> Table:
    """Time of this version over that of the earlier one."""
    before = [f"training, ms a token, {args.against}", f"generation, s, {args.against}"]
    columns = ["", before[0], "now", "now / then", before[1], "now", "now / then"]
    title = f"Training of {args.updates} updates and generation of {args.subset}"
    shown = Table(title, columns)
    for row, times in figures.items():
        cells = [row]
        for sides in times.values():
            cells += [f"{sides[name].median:.2f}" for name in (args.against, HERE)]
            cells.append(sides[HERE].over(sides[args.against]).ratio())
        shown.rows.append(cells)
    return shown


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=5, sized=False)
    parser.add_argument("--against", required=True, metavar="REVISION", help="a commit of this repository")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="(default: all)")
    parser.add_argument("--updates", type=int, default=30, help="of each training (30)")
    parser.add_argument("--pairs", type=int, default=2500, help="to train on (2500)")
    parser.add_argument("--symbols", type=int, default=10, help="at most of a generated sentence (10)")
    parser.add_argument("--subset", default="valid", help="to generate (valid)")
    args = parse(parser, arguments)
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(out / "tree"), args.against], check=True)
        try:
            sides = {args.against: Side(out / "tree", out / "old", args), HERE: Side(ROOT, out / "new", args)}
            for side in sides.values():
                side.out.mkdir()
            data = prepare(out, args)
            for row in args.rows:
                times = measure(sides, data, row, args.rounds)
                figures[row] = dict(zip(("training", "generation"), times))
        finally:
            subprocess.run([*git, "remove", "--force", str(out / "tree")], check=True)
    report("versions", args, [table(figures, args)], rows=figures)


if __name__ == "__main__":
    main()
