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
from functools import cached_property
from pathlib import Path
from typing import Any

from lmfusion.text import binarize, encode_bpe, learn_bpe, model_pieces, preparation_flags, textio, tokenize_text
from lmfusion.text import corpus as corpora
from lmfusion.text import record as records
from lmfusion.text.huggingface import PieceTokenizer
from lmfusion.text.tokenize_text import MOSES, NO_TOKENIZER

MADE = ("text", "tok", "bpe", "spm.model", "dict.txt", "bitext-*", "lm.*")
"""What a preparation takes for its own work where it finds it."""


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
            mono_langs_for_bpe=() if args.spm else preparation_flags.own_bpe_langs(args),
            prefix=args.pairs,
            text_lang=args.text_lang,
            more_text=args.more_text,
        )
        self.models = preparation_flags.model_folders(args)
        self.has_bpe = bool(preparation_flags.own_bpe_langs(args))
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
            record = records.Record(self.out, self.settings(), self.corpus.hashes(), made=MADE)
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
        self.steps("tok", [name for name in self.corpus.names() if not self.is_in_pieces(name)], self.tokenize)
        if self.has_bpe:
            self.step(self.spm, self.make_bpe)
            learn_bpe.check_dictionary(self.spm, self.dictionary, self.args.spm, self.args.dict)
        for side in self.models:
            self.step(self.pieces(side), self.keep_tokenizer)
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
        if not self.has_bpe:
            bpe: dict[str, Any] = {}
        elif self.args.spm:
            bpe = {"model_sha256": corpora.file_hash(self.args.spm)}
        else:
            bpe = {"size": self.args.bpe_size, "seed": self.args.seed}
        return {
            "source_lang": self.args.source_lang,
            "target_lang": self.args.target_lang,
            "text_lang": self.args.text_lang,
            "tokenizer": tokenize_text.tokenizer_flags() if self.args.tokenizer == MOSES else self.args.tokenizer,
            "bpe": bpe,
            "models": {side: tokenizer.hash for side, tokenizer in self.tokenizers.items()},
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
        size = self.learn(mono, target)
        return f"{size} symbols learned" + (", all that this text has" if size < self.args.bpe_size else "")

    def learn(self, texts: list[Path], target: Path) -> int:
        """Learn the joint BPE and return the number of its symbols."""
        return learn_bpe.learn_to_files(texts, self.args.bpe_size, self.args.seed, target, self.dictionary)

    @cached_property
    def tokenizers(self) -> dict[str, PieceTokenizer]:
        """Return the tokenizers of the sides that have a model's pieces, by the side's name."""
        return model_pieces.read_sides(self.models, self.args.target_lang)

    def pieces(self, side: str) -> Path:
        """Return the file of the tokenizer of a side that has a model's pieces."""
        return self.out / f"pieces.{side}.json"

    def dictionary_of(self, side: str) -> Path:
        """Return a side's dictionary."""
        return self.out / f"dict.{side}.txt" if side in self.models else self.dictionary

    def is_in_pieces(self, name: str) -> bool:
        """Return whether a file becomes pieces of a model."""
        return name in self.corpus.bitext_names() and name.rsplit(".", 1)[1] in self.models

    def keep_tokenizer(self, target: Path) -> str:
        """Write the tokenizer of a side, and its dictionary."""
        side = target.name.split(".")[1]
        model_pieces.write_pieces(self.tokenizers[side], target, self.dictionary_of(side))
        return f"{len(self.tokenizers[side].symbols):,} pieces of {self.models[side]}"

    def encode(self, target: Path) -> None:
        """Write BPE symbols of one file."""
        self.write_symbols(target.name, target)

    def write_symbols(self, name: str, target: Path) -> None:
        """Write the symbols of the file called `name`."""
        if self.is_in_pieces(name):
            pieces = self.pieces(name.rsplit(".", 1)[1])
            model_pieces.encode_file(self.out / "text" / name, target, pieces, self.args.workers)
        else:
            encode_bpe.encode_file(self.out / "tok" / name, target, self.spm, self.args.workers)

    def bitext_folder(self) -> Path:
        """Return where the binarized bitext goes."""
        return self.out / f"bitext-{self.args.bitext_lines or 'all'}"

    def binarize_bitext(self, target: Path) -> str:
        """Write filtered training pairs, valid and test in fairseq's format."""
        bpe, langs = self.out / "bpe", (self.args.source_lang, self.args.target_lang)
        with binarize.making_folder(target) as work:
            kept = self.filtered_folder(target, work)
            train = (kept / f"train.{langs[0]}", kept / f"train.{langs[1]}")
            limits = (self.args.bitext_lines, self.args.max_length, self.args.max_ratio)
            encoded = (bpe / f"train.{langs[0]}", bpe / f"train.{langs[1]}")
            counts = binarize.filter_pairs(encoded, train, *limits)
            flags = ["-s", langs[0], "-t", langs[1], "--tgtdict", str(self.dictionary_of(langs[1]))]
            flags += ["--srcdict", str(self.dictionary_of(langs[0]))]
            flags += ["--trainpref", str(kept / "train")]
            flags += ["--validpref", str(bpe / "valid"), "--testpref", str(bpe / "test")]
            return self.binarize(work, target.name, counts, flags, train)

    def binarize_lm(self, target: Path) -> str:
        """Write monolingual sentences of one language in fairseq's format."""
        flags, lang = ["--only-source", "--srcdict", str(self.dictionary)], target.suffix[1:]
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
        flags += ["--workers", str(self.args.workers or binarize.workers_for(texts[0]))]
        self.announce(name, flags)
        files = binarize.fairseq_preprocess(work, flags, self.out / "logs" / f"{name}.log")
        for path in (text for text in texts if text.parent == work):
            path.unlink()
        self.counts[name] = {"train": counts, "files": files}
        self.save_record()
        kept = ", ".join(f"{word.replace('_', ' ')} {n:,}" for word, n in sorted(counts.items()))
        return f"train {kept}; at most {binarize.most_unknown(files):.2g}% unknown symbols"


def parse_args(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; see :func:`lmfusion.text.preparation_flags.parse_args`."""
    return preparation_flags.parse_args(__doc__ or "", words)


def main() -> None:
    """Run the command line."""
    Preparation(parse_args()).run()


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
