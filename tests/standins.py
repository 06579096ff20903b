"""Stand-ins for the corpora of the paper: small archives under the original names and in the original formats.

    python tests/standins.py --out FOLDER

makes them of the embedded corpus, and FOLDER/sources.tsv: a table like data-prep/sources.tsv whose addresses are these
files, with their true sizes, checksums and counts. The text has what the real files have too: repeated sentences,
empty lines, bytes that are not UTF-8, pairs that are too long or too unequal, stories without an article.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

EMBEDDED = Path(__file__).parents[1] / "data-prep" / "debian" / "en-de"
HEADER = ("name", "file", "url", "bytes", "checksum", "counts", "licence", "note")
YEARS = range(2007, 2018)
LINES_A_YEAR = 60
BITEXT = {"europarl-v7": 200, "commoncrawl": 250, "news-commentary-v13": 100, "rapid2016": 150}
SETIMES_PAIRS = 300
STORIES = {"train": 120, "val": 10, "test": 10}
EMPTY_STORIES = 2
TURKISH = str.maketrans({"ß": "ş", "ä": "ı", "w": "v", "x": "ks", "q": "k", "W": "V", "Ä": "İ"})


@dataclass(frozen=True)
class StandIn:
    """One archive: its name in the table, its file name, its bytes and the counts the table knows of it."""

    name: str
    file: str
    data: bytes
    counts: str = "-"


def embedded(name: str, start: int, count: int) -> list[str]:
    """Lines of a file of the embedded corpus."""
    with lzma.open(EMBEDDED / f"{name}.xz", "rt", encoding="utf-8", newline="\n") as stream:
        return [line.rstrip("\n") for line in islice(stream, start, start + count)]


def joined(lines: list[str]) -> bytes:
    """A text file."""
    return "".join(line + "\n" for line in lines).encode()


def tgz(members: dict[str, bytes]) -> bytes:
    """A .tgz; the same bytes each time."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def zipped(members: dict[str, bytes]) -> bytes:
    """A .zip; the same bytes each time."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return data.getvalue()


def newscrawl_file(lang: str, year: int) -> str:
    """What WMT calls a year of newscrawl."""
    ending = {2014: "shuffled.v2", 2017: "shuffled.deduped"}.get(year, "shuffled")
    return f"news.{year}.{lang}.{ending}.gz"


def newscrawl(lang: str) -> Iterator[StandIn]:
    """Eleven years; each repeats a sentence of itself and two of the year before."""
    for number, year in enumerate(YEARS):
        lines = embedded(f"mono.train.{lang}", number * LINES_A_YEAR, LINES_A_YEAR)
        before = embedded(f"mono.train.{lang}", max(0, number - 1) * LINES_A_YEAR, 2)
        lines += [lines[3], "", lines[5] + "  ", *before]
        data = joined(lines) + b"caf\xe9 is not UTF-8\n" + joined(["word " * 300])
        yield StandIn(f"newscrawl.{year}.{lang}", newscrawl_file(lang, year), gzip.compress(data, mtime=0))


BITEXT_FILES = {
    "europarl-v7": ("training-parallel-europarl-v7.tgz", "training/europarl-v7.de-en"),
    "commoncrawl": ("training-parallel-commoncrawl.tgz", "commoncrawl.de-en"),
    "news-commentary-v13": ("training-parallel-nc-v13.tgz", "training-parallel-nc-v13/news-commentary-v13.de-en"),
    "rapid2016": ("rapid2016.tgz", "rapid2016.de-en"),
}


def bitext() -> Iterator[StandIn]:
    """The four parallel corpora of WMT'18 English-German, each with another language pair beside it."""
    start = 0
    for name, size in BITEXT.items():
        english, german = (embedded(f"train.{lang}", start, size - 4) for lang in ("en", "de"))
        english += ["", "a very long sentence " * 70, "one two three four", "You are welcome ."]
        german += ["Leer", "ein sehr langer Satz " * 70, "eins", "Gern geschehen , bitte ."]
        start += size
        file, member = BITEXT_FILES[name]
        members = {
            f"{member}.de": joined(german),
            f"{member}.en": joined(english),
            member.replace("de-en", "fr-en") + ".fr": b"rien\n",
        }
        yield StandIn(name, file, tgz(members), f"en-de={size}")


def sgm(kind: str, name: str, lang: str, lines: list[str]) -> bytes:
    """A test set as WMT gives it: `kind` is srcset or refset."""
    segments = "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in enumerate(lines, start=1))
    head = f'<{kind} setid="{name}" srclang="any" trglang="{lang}">\n<doc sysid="ref" docid="news" genre="news">\n'
    return f"{head}<p>\n{segments}</p>\n</doc>\n</{kind}>\n".encode()


def test_set_members(year: int) -> dict[tuple[str, str], tuple[str, str]]:
    """The names of a test set's files in its archive, by language pair."""
    if year < 2014:
        return {("en", "de"): (f"test/newstest{year}-src.en.sgm", f"test/newstest{year}-src.de.sgm")}
    if year == 2014:
        return {("en", "de"): ("test-full/newstest2014-deen-src.en.sgm", "test-full/newstest2014-deen-ref.de.sgm")}
    pairs = [("en", "de")] + ([("en", "tr")] if year >= 2017 else [])
    return {
        (s, t): (f"test/newstest{year}-{s}{t}-src.{s}.sgm", f"test/newstest{year}-{s}{t}-ref.{t}.sgm") for s, t in pairs
    }


def newstests() -> Iterator[StandIn]:
    """newstest2012 to newstest2018, with 20 sentences and more."""
    for number, year in enumerate(range(2012, 2019)):
        size = 20 + number
        english, german = (embedded(f"test.{lang}", 40 * number, size) for lang in ("en", "de"))
        members = {}
        for (source, target), names in test_set_members(year).items():
            other = [line.translate(TURKISH) for line in german] if target == "tr" else german
            kind = "srcset" if year < 2014 else "refset"
            members[names[0]] = sgm("srcset", f"newstest{year}", source, english)
            members[names[1]] = sgm(kind, f"newstest{year}", target, other)
        counts = ",".join(f"{'-'.join(pair)}={size}" for pair in test_set_members(year))
        file = "test-full.tgz" if year == 2014 else "test.tgz"
        yield StandIn(f"newstest{year}", f"wmt{year - 2000}-{file}", tgz(members), counts)


def setimes() -> Iterator[StandIn]:
    """SETIMES2, as OPUS packs it; German with other letters stands for Turkish."""
    english, german = (embedded(f"train.{lang}", 5000, SETIMES_PAIRS) for lang in ("en", "de"))
    members = {
        "README": b"SETIMES2\n",
        "SETIMES.en-tr.en": joined(english),
        "SETIMES.en-tr.tr": joined([line.translate(TURKISH) for line in german]),
        "SETIMES.en-tr.ids": joined(["x"] * SETIMES_PAIRS),
    }
    yield StandIn("setimes2", "en-tr.txt.zip", zipped(members), f"en-tr={SETIMES_PAIRS}")


def story(description: str, synopsis: str) -> bytes:
    """A news story: paragraphs, then highlights, with empty lines between."""
    paragraphs = [part.strip() for part in description.replace(". ", ".\n").split("\n")]
    highlights = [f"{synopsis}", f"In short: {synopsis}"]
    blocks = paragraphs + [text for highlight in highlights for text in ("@highlight", highlight)]
    return "\n\n".join(blocks).encode()


def cnn_dm() -> Iterator[StandIn]:
    """The stories of CNN and Daily Mail, and the lists of their addresses that make the splits."""
    stories: dict[str, dict[str, bytes]] = {"cnn": {}, "dailymail": {}}
    for split, size in STORIES.items():
        corpus = {"val": "valid"}.get(split, split)
        texts = zip(*(embedded(f"synopsis.{corpus}.{side}", 0, size) for side in ("description", "synopsis")))
        urls = []
        for number, (description, synopsis) in enumerate(texts):
            site = ("cnn", "dailymail")[number % 2]
            urls.append(f"http://web.archive.org/web/2015id_/http://www.{site}.com/{split}/{number}.html")
            if split == "train" and number < EMPTY_STORIES:
                description = ""
            name = hashlib.sha1(urls[-1].encode()).hexdigest()
            stories[site][f"{site}/stories/{name}.story"] = story(description, synopsis)
        yield StandIn(f"cnn_dm.urls.{split}", f"all_{split}.txt", joined(urls), f"urls={size}")
    for site, members in stories.items():
        yield StandIn(f"{site}_stories", f"{site}_stories.tgz", tgz(members))


def all_of_them() -> Iterator[StandIn]:
    """Every corpus of the paper."""
    for lang in ("en", "de"):
        yield from newscrawl(lang)
    yield from bitext()
    yield from newstests()
    yield from setimes()
    yield from cnn_dm()


def make(folder: Path) -> Path:
    """Write the stand-ins and their table; return the table's path."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["\t".join(HEADER)]
    for item in all_of_them():
        path = (folder / item.file).resolve()
        path.write_bytes(item.data)
        digest = "sha256:" + hashlib.sha256(item.data).hexdigest()
        row = (item.name, item.file, path.as_uri(), str(len(item.data)), digest, item.counts, "-", "stand-in")
        rows.append("\t".join(row))
    table = folder / "sources.tsv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return table


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    print(make(parser.parse_args().out))


if __name__ == "__main__":
    main()
