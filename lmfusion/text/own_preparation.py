"""Prepare text of a person's own: as any corpus, but what is too long is told, cut or left out before any training."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path

from lmfusion.text import binarize, learn_bpe, letters, textio
from lmfusion.text import corpus as corpora
from lmfusion.text.prepare import Preparation
from lmfusion.text.printable import printable

HELD_OUT = ("valid", "test")
LEFT_OUT = "left_out"
"""Of prepare.json's counts: numbers of the corpus' lines, by split, that are too long to be held out."""
KEPT = "kept"
"""Folder of the text that is left after filtering: with it, the commands that are shown can be run again."""


class OwnPreparation(Preparation):
    """Fill a folder from a corpus folder that was made of a person's own files."""

    def __init__(self, args: argparse.Namespace, given: dict[str, tuple[Path, Path]], chosen: bool = False) -> None:
        """Say what to prepare.

        Args:
            args: as :func:`lmfusion.text.prepare.parse_args` returns them. Where they name one language for both sides,
                the source side is cut at the greatest length, and so is that language's plain text, in pieces.
            given: the files of splits that were not split off but given.
            chosen: the BPE's size was chosen by the amount of text: where the text gives fewer symbols, these will do.
        """
        super().__init__(args)
        self.given = given
        self.began = False
        self.cuts_long_text = bool(args.text_lang)
        self.takes_fewer_symbols = chosen

    def run(self) -> None:
        """Run all steps in order; what is refused can be tried again with other settings.

        Raises:
            DataError: anything wrong with the input.
        """
        try:
            super().run()
        except textio.DataError:
            if self.began and not self.bitext_folder().exists():
                self.forget()
            raise

    def forget(self) -> None:
        """Delete what depends on settings, where nothing is binarized yet."""
        pieces = [self.pieces(side) for side in self.models]
        for made in (self.spm, self.dictionary, self.out / "prepare.json", *pieces):
            made.unlink(missing_ok=True)
        for folder in ("text", "tok", "bpe"):
            shutil.rmtree(self.out / folder, ignore_errors=True)

    def make_symbols(self) -> None:
        """Make everything up to BPE symbols, without held-out pairs that are longer than models read.

        Raises:
            DataError: anything wrong with the input; a pair that was given to validate or test on is too long.
        """
        self.began = True  # the settings are those of the folder
        super().make_symbols()
        too_long = {split: found for split in HELD_OUT if (found := self.find_long(split))}
        for split in too_long:
            if split in self.given:
                raise textio.DataError(self.describe_long(split, too_long[split]))
        if too_long:
            self.leave_out({split: list(found) for split, found in too_long.items()})
            super().make_symbols()

    def find_long(self, split: str) -> dict[int, tuple[int, int]]:
        """Return the pairs of a split that are too long: number in the encoded files -> symbols of both sides."""
        sides = [self.out / "bpe" / f"{split}.{side}" for side in (self.args.source_lang, self.args.target_lang)]
        pairs = enumerate(zip(*map(textio.read_lines, sides)), start=1)
        lengths = ((number, (len(source.split()), len(target.split()))) for number, (source, target) in pairs)
        return {number: both for number, both in lengths if max(both) > self.args.max_length}

    def describe_long(self, split: str, found: dict[int, tuple[int, int]]) -> str:
        """Return what is wrong with a split that was given, and with which lines of which file."""
        number, lengths = next(iter(found.items()))
        file = self.given[split][lengths[1] > lengths[0]]
        more = f", and in {len(found) - 1:,} more pairs (lines {_listed(list(found)[1:])})" if len(found) > 1 else ""
        return (
            f"{file}, line {number}: {max(lengths)} symbols are more than the {self.args.max_length} that models "
            f"read{more}. Split these pairs or take them out, of both files; or give --max-length "
            f"{max(map(max, found.values()))}, and language models a larger --tokens-per-sample."
        )

    def leave_out(self, too_long: dict[str, list[int]]) -> None:
        """Forget the held-out splits that have pairs that are too long, and note these: they are not unpacked again."""
        for split in too_long:
            for folder in ("text", "tok", "bpe"):
                for side in (self.args.source_lang, self.args.target_lang):
                    (self.out / folder / f"{split}.{side}").unlink(missing_ok=True)
        self.counts[LEFT_OUT] = {**self.counts.get(LEFT_OUT, {}), **too_long}
        self.save_record()
        listed = ", ".join(f"{len(numbers):,} of {split}" for split, numbers in too_long.items())
        print(f"held-out pairs of more than {self.args.max_length} symbols, left out: {listed}", flush=True)

    def unpack(self, target: Path) -> None:
        """Write clean raw text of one file, without the pairs that are left out of it."""
        split = target.name.split(".")[0]
        numbers = set(self.counts.get(LEFT_OUT, {}).get(split, []))
        if not numbers:
            super().unpack(target)
            return
        count = 0
        with textio.writing(target) as stream:
            for number, line in enumerate(corpora.clean_lines(self.corpus.find(target.name)), start=1):
                if number not in numbers:
                    stream.write(line + "\n")
                    count += 1
        if not count:
            raise textio.DataError(f"{target}: all pairs of {split} are longer than --max-length.")
        self.counts[f"text/{target.name}"] = count
        self.save_record()

    def learn(self, texts: list[Path], target: Path) -> int:
        """Learn the BPE with rare characters and with those of the training pairs; note which it leaves out."""
        sides = [side for side in (self.args.source_lang, self.args.target_lang) if side not in self.models]
        # The text may be the pairs' own: a character counts by the one of both that has it more often.
        found = letters.count(texts) | letters.count(self.out / "tok" / f"train.{side}" for side in sides)
        size = learn_bpe.learn_to_files(
            *(texts, self.args.bpe_size, self.args.seed, target, self.dictionary),
            required=letters.wanted(found, self.args.bpe_size),
            fewer=self.takes_fewer_symbols,
        )
        symbols = [line.rsplit(" ", 1)[0] for line in textio.read_lines(self.dictionary)]
        for note in letters.without_symbol(found, symbols):
            print(f"note: {printable(note)}", flush=True)
        return size

    def encode(self, target: Path) -> None:
        """Write BPE symbols of one file; texts to be summarized are cut."""
        if not (self.args.text_lang and target.name in self.corpus.bitext_names()[::2]):
            super().encode(target)
            return
        whole = target.with_name(f"whole.{target.name}")
        self.write_symbols(target.name, whole)
        with textio.writing(target) as stream:
            stream.writelines(
                binarize.pieces(line, self.args.max_length)[0] + "\n" for line in textio.read_lines(whole)
            )
        whole.unlink()

    def filtered_folder(self, target: Path, work: Path) -> Path:
        """Return where text that was filtered for the folder `target` goes, and stays."""
        return self.out / KEPT / target.name

    def announce(self, name: str, flags: list[str]) -> None:
        """Print the command of fairseq that fills the folder of this name, to be copied."""
        print("$ " + shlex.join(["fairseq-preprocess", "--destdir", str(self.out / name), *flags]), flush=True)


def _listed(numbers: list[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers[:20]) + (" …" if len(numbers) > 20 else "")
