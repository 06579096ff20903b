"""Corpus folder -> everything fairseq trains on. Run it again: it does only what is missing.

    python data-prep/prepare.py data-prep/debian/en-de -s en -t de --out OUT --bitext-lines 5000 --bpe-size 4000

OUT/spm.model OUT/dict.txt     joint BPE and dictionary (learned on the monolingual text, or given)
OUT/bitext-5000/               the first 5000 training pairs, valid and test, for fairseq-train --task translation
OUT/lm.en/ OUT/lm.de/          for fairseq-train --task language_modeling
OUT/text/                      clean raw text: the references to score against
OUT/prepare.json               settings, hashes of the input, counts

Subsets of a bitext are nested, and share everything else in OUT. Pairs of two kinds of text in one language:

    python data-prep/prepare.py data-prep/debian/en-de -s description -t synopsis --pairs synopsis --text-lang en …
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lmfusion.text import binarize, encode_bpe, learn_bpe, textio, tokenize_text
from lmfusion.text import corpus as corpora
from lmfusion.text import record as records
from lmfusion.text.tokenize_text import MOSES, NO_TOKENIZER


class Preparation:
    """Fill one output folder, step by step."""

    cuts_long_text = False
    """Whether long lines of the language models' text are cut in pieces rather than dropped."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.out: Path = args.out
        self.corpus = corpora.Corpus(
            *(args.corpus, args.source_lang, args.target_lang),
            lm_langs=tuple(args.lm_langs),
            mono_langs_for_bpe=() if args.spm else text_langs(args),
            prefix=args.pairs,
            text_lang=args.text_lang,
            more_text=args.more_text,
        )
        self.spm = self.out / "spm.model"
        self.dictionary = self.out / "dict.txt"
        self.counts: dict[str, Any] = {}
        self.save_record: Callable[[], None] = lambda: None

    def run(self) -> None:
        """Run all steps in order.

        Raises:
            DataError: anything wrong with the input.
        """
        with records.locked(self.out):
            record = records.Record(self.out, self.settings(), self.corpus.hashes())
            self.counts, self.save_record = record.counts, record.save
            self.make_symbols()
            self.step(self.bitext_folder(), self.binarize_bitext)
            for lang in self.args.lm_langs:
                self.step(self.out / f"lm.{lang}", self.binarize_lm)

    def make_symbols(self) -> None:
        """Make everything up to text in BPE symbols.

        Raises:
            DataError: anything wrong with the input.
        """
        self.steps("text", self.corpus.names(), self.unpack)
        corpora.check_parallel(self.corpus, self.out / "text")
        self.steps("tok", self.corpus.names(), self.tokenize)
        self.step(self.spm, self.make_bpe)
        learn_bpe.check_dictionary(self.spm, self.dictionary, self.args.spm, self.args.dict)
        self.steps("bpe", self.corpus.bitext_names() + self.corpus.lm_names(), self.encode)

    def step(self, target: Path, make: Callable[[Path], str]) -> None:
        """Make `target` unless it is there, and say so."""
        if target.exists():
            return
        print(f"{target.relative_to(self.out)}: {make(target)}", flush=True)

    def steps(self, folder: str, names: list[str], make: Callable[[Path], object]) -> None:
        """Make each file of a folder that is not there yet, and say so in one line."""
        missing = [name for name in names if not (self.out / folder / name).exists()]
        for name in missing:
            make(self.out / folder / name)
        if missing:
            print(f"{folder}: {' '.join(missing)}", flush=True)

    def settings(self) -> dict[str, Any]:
        """Return what makes two preparations the same."""
        if self.args.spm:
            bpe: dict[str, Any] = {"model_sha256": corpora.file_hash(self.args.spm)}
        else:
            bpe = {"size": self.args.bpe_size, "seed": self.args.seed}
        return {
            "source_lang": self.args.source_lang,
            "target_lang": self.args.target_lang,
            "text_lang": self.args.text_lang,
            "tokenizer": tokenize_text.tokenizer_flags() if self.args.tokenizer == MOSES else self.args.tokenizer,
            "bpe": bpe,
            "max_length": self.args.max_length,
            "max_ratio": self.args.max_ratio,
            "more_text": bool(self.args.more_text),
        }

    def unpack(self, target: Path) -> None:
        """Write clean raw text of one file."""
        self.counts[f"text/{target.name}"] = corpora.unpack(self.corpus.find(target.name), target)
        self.save_record()

    def tokenize(self, target: Path) -> None:
        """Write tokens of one file."""
        source = self.out / "text" / target.name
        if self.args.tokenizer == NO_TOKENIZER:
            textio.copy_file(source, target)
            return
        tokenize_text.tokenize_file(source, target, self.corpus.language(target.name), self.args.workers)

    def make_bpe(self, target: Path) -> str:
        """Make the joint BPE and its dictionary: given, or learned on the monolingual text."""
        if self.args.spm:
            textio.copy_file(self.args.dict, self.dictionary)
            textio.copy_file(self.args.spm, target)
            return f"copied from {self.args.spm}"
        mono = [self.out / "tok" / f"mono.train.{x}" for x in self.corpus.mono_langs_for_bpe]
        print(f"learning a joint BPE of {self.args.bpe_size} symbols …", flush=True)
        learn_bpe.learn_to_files(mono, self.args.bpe_size, self.args.seed, target, self.dictionary)
        return f"{self.args.bpe_size} symbols learned"

    def encode(self, target: Path) -> None:
        """Write BPE symbols of one file."""
        source = self.out / "tok" / target.name
        encode_bpe.encode_file(source, target, self.spm, self.args.workers)

    def bitext_folder(self) -> Path:
        """Return where the binarized bitext goes."""
        return self.out / f"bitext-{self.args.bitext_lines or 'all'}"

    def binarize_bitext(self, target: Path) -> str:
        """Write filtered training pairs, valid and test in fairseq's format."""
        bpe, langs = self.out / "bpe", (self.args.source_lang, self.args.target_lang)
        with binarize.making_folder(target) as work:
            kept = self.filtered_folder(target, work)
            train = (kept / f"train.{langs[0]}", kept / f"train.{langs[1]}")
            counts = binarize.filter_pairs(
                (bpe / f"train.{langs[0]}", bpe / f"train.{langs[1]}"),
                train,
                self.args.bitext_lines,
                self.args.max_length,
                self.args.max_ratio,
            )
            flags = ["-s", langs[0], "-t", langs[1], "--tgtdict", str(self.dictionary)]
            flags += ["--trainpref", str(kept / "train")]
            flags += ["--validpref", str(bpe / "valid"), "--testpref", str(bpe / "test")]
            return self.binarize(work, target.name, counts, flags, train)

    def binarize_lm(self, target: Path) -> str:
        """Write monolingual sentences of one language in fairseq's format."""
        flags, lang = ["--only-source"], target.suffix[1:]
        with binarize.making_folder(target) as work:
            texts = tuple(self.filtered_folder(target, work) / split for split in corpora.MONO_SPLITS)
            counts = []
            for split, text in zip(corpora.MONO_SPLITS, texts):
                sources = [self.out / "bpe" / name for name in self.corpus.lm_text(lang, split)]
                counts.append(binarize.filter_sentences(sources, text, self.args.max_length, self.cuts_long_text))
                flags += [f"--{split}pref", str(text)]
            return self.binarize(work, target.name, counts[0], flags, texts)

    def filtered_folder(self, target: Path, work: Path) -> Path:
        """Return where text that was filtered for the folder `target` goes, which is made as `work`."""
        return work

    def announce(self, name: str, flags: list[str]) -> None:
        """Say with which flags of fairseq-preprocess a folder is filled; its log says so anyhow."""

    def binarize(self, work: Path, name: str, counts: dict[str, int], flags: list[str], texts: tuple[Path, ...]) -> str:
        """Binarize into `work`, take the filtered `texts` out if they lie there, and say what came of it."""
        flags += [
            "--srcdict",
            str(self.dictionary),
            "--workers",
            str(self.args.workers or binarize.workers_for(texts[0])),
        ]
        self.announce(name, flags)
        files = binarize.fairseq_preprocess(work, flags, self.out / "logs" / f"{name}.log")
        for path in texts:
            if path.parent == work:
                path.unlink()
        self.counts[name] = {"train": counts, "files": files}
        self.save_record()
        worst = max((file["unknown_percent"] for file in files.values()), default=0.0)
        kept = ", ".join(f"{word.replace('_', ' ')} {n:,}" for word, n in sorted(counts.items()))
        return f"train {kept}; at most {worst}% unknown symbols"


def text_langs(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the languages of the two sides, each once."""
    return (args.text_lang,) if args.text_lang else (args.source_lang, args.target_lang)


def parse_args(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, that of this process by default.

    Raises:
        DataError: flags that do not go together.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder with train.en[.xz], mono.train.en[.xz] …")
    for flag in ("--source-lang", "--target-lang"):
        parser.add_argument(flag[1:3], flag, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    parser.add_argument("--pairs", default="", metavar="PREFIX", help="parallel files are called PREFIX.train.…")
    parser.add_argument("--text-lang", help="language of both sides, where -s and -t are no languages")
    tokenizer = "before the BPE; none: sentencepiece reads the text as it is (default: moses)"
    parser.add_argument("--tokenizer", choices=(MOSES, NO_TOKENIZER), default=MOSES, help=tokenizer)
    parser.add_argument("--bitext-lines", type=int, help="first N pairs of train (default: all)")
    parser.add_argument("--bpe-size", type=int, help="learn a BPE with so many symbols")
    parser.add_argument("--seed", type=int, default=1, help="for learning the BPE (default: 1)")
    parser.add_argument("--spm", type=Path, help="use this sentencepiece model instead")
    parser.add_argument("--dict", type=Path, help="the fairseq dictionary written with --spm")
    parser.add_argument("--lm-langs", nargs="*", help="LM data for these (default: those of both sides)")
    parser.add_argument("--more-text", type=Path, metavar="FOLDER", help="LMs train on its mono.more.en … as well")
    parser.add_argument("--max-length", type=int, default=250, help="symbols (default: 250)")
    parser.add_argument("--max-ratio", type=float, default=1.5, help="0: any (default: 1.5)")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    args = parser.parse_args(words)
    if bool(args.spm) != bool(args.dict) or bool(args.spm) == bool(args.bpe_size):
        raise textio.DataError("give either --bpe-size N, or --spm MODEL together with --dict DICT")
    if args.spm and not args.spm.is_file():
        raise textio.DataError(f"{args.spm}: no such file")
    if args.bitext_lines is not None and args.bitext_lines < 1:
        raise textio.DataError(f"--bitext-lines {args.bitext_lines}: give a number above 0")
    if args.lm_langs is None:
        args.lm_langs = list(text_langs(args))
    return args


def main() -> None:
    """Run the command line."""
    Preparation(parse_args()).run()


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
