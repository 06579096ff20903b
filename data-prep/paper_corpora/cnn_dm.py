"""CNN-DailyMail, non-anonymized: articles of 400 tokens and their highlights, and text for an English LM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lmfusion.text import binarize, textio, tokenize_text
from paper_corpora import ids, newscrawl, vocabulary
from paper_corpora.parallel import write_lines
from paper_corpora.stages import Outcome, Stage
from paper_corpora.stories import MARKER, SIDES, Splits, parse, read_split, stories
from paper_corpora.workspace import Workspace

CORPUS = "cnn_dm"
LANG = "en"
ARTICLE_TOKENS = 400
LISTS = {"train": "cnn_dm.urls.train", "valid": "cnn_dm.urls.val", "test": "cnn_dm.urls.test"}
ARCHIVES = ("cnn_stories", "dailymail_stories")
EXPECTED = {"train": 287_227, "valid": 13_368, "test": 11_490}
NAMES = [f"{split}.{side}" for split in LISTS for side in SIDES]
LM_TEXT = "stories.train.en"
UNPACKED = 4  # bytes of text for a byte of an archive, for the plan of the disk space


class Steps:
    """The stages, in one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = workspace.folder(CORPUS)
        self.news = workspace.folder(newscrawl.CORPUS) / "tok"
        self.size = UNPACKED * sum(workspace.source(name).size for name in ARCHIVES)

    def files(self, folder: str, *names: str) -> tuple[Path, ...]:
        """Text files of this corpus."""
        return tuple(self.folder / folder / name for name in names)

    def stages(self) -> list[Stage]:
        """All in order."""
        model = self.files("", "spm.model", "dict.txt")
        return [
            self.stage(
                "text", self.files("text", *NAMES, LM_TEXT), self.unpack, 2 * self.size, *LISTS.values(), *ARCHIVES
            ),
            self.stage("tok", self.files("tok", *NAMES, LM_TEXT), self.tokenize, 2 * self.size),
            *newscrawl.stages(self.workspace, LANG),
            self.stage("spm.model", model, self.learn, 600 * self.workspace.scale.bpe_sample),
            self.stage("bpe", self.files("bpe", *NAMES), self.encode, 2 * self.size),
            self.stage("lm.en", self.files("", "lm.en"), self.language_model, 3 * self.news_size() + 2 * self.size),
            self.stage("bitext-all", self.files("", "bitext-all"), self.pairs, self.size),
        ]

    def stage(self, name: str, outputs: tuple[Path, ...], make, disk: int, *sources: str) -> Stage:  # type: ignore[no-untyped-def]
        """A stage of this corpus."""
        return Stage(CORPUS, name, outputs, make, disk, tuple(map(self.workspace.source, sources)))

    def news_size(self) -> int:
        """Bytes of newscrawl's text, estimated."""
        years = (self.workspace.source(f"newscrawl.{year}.{LANG}") for year in newscrawl.YEARS)
        return newscrawl.UNPACKED * sum(source.size for source in years)

    def unpack(self) -> Outcome:
        """Articles and summaries by split, and the sentences of the training stories."""
        workspace = self.workspace
        lists = {split: read_split(workspace.path(name), workspace.source(name)) for split, name in LISTS.items()}
        paths = [workspace.path(name) for name in ARCHIVES]
        splits = Splits(self.folder / "text", lists)
        splits.write(paths)
        write_lines(self.folder / "text" / LM_TEXT, story_lines(paths, set(lists["train"])))
        words = [
            f"{split}: {len(lists[split]):,} stories listed (paper: {EXPECTED[split]:,}), {counts['kept']:,} kept, "
            f"{counts['no_article']:,} without an article, {counts['no_summary']:,} without highlights"
            for split, counts in splits.counts.items()
        ]
        return Outcome("\n".join(words), {split: dict(counts) for split, counts in splits.counts.items()})

    def tokenize(self) -> Outcome:
        """Moses tokens; articles are cut."""
        for name in (*NAMES, LM_TEXT):
            target = self.folder / "tok" / name
            if not name.endswith(".article"):
                tokenize_text.tokenize_file(self.folder / "text" / name, target, LANG, self.workspace.workers)
                continue
            whole = textio.partial_name(target.with_name(f"{name}.whole"))
            try:
                tokenize_text.tokenize_file(self.folder / "text" / name, whole, LANG, self.workspace.workers)
                write_lines(target, cut(textio.read_lines(whole)))
            finally:
                whole.unlink(missing_ok=True)
        return Outcome(f"Moses tokens, articles cut to {ARTICLE_TOKENS}", {})

    def learn(self) -> Outcome:
        """The BPE, on newscrawl and the stories; the marker, which no LM's text has, is a symbol of it."""
        texts = [self.news / f"mono.train.{LANG}", *self.files("tok", LM_TEXT)]
        outputs = self.files("", "spm.model", "dict.txt")
        return vocabulary.learn(self.workspace, texts, self.workspace.scale.summary_bpe, *outputs, (MARKER,))

    def encode(self) -> Outcome:
        """BPE symbols."""
        files = list(self.files("tok", *NAMES)), list(self.files("bpe", *NAMES))
        return vocabulary.encode(self.workspace, *files, self.folder / "spm.model")

    def language_model(self) -> Outcome:
        """newscrawl and the sentences of the training stories, in ids."""
        bpe = self.folder / "bpe"
        news = {split: bpe / f"mono.{split}.{LANG}" for split in ("train", "valid")}
        files = {self.news / path.name: path for path in news.values()}
        files |= dict(zip(self.files("tok", LM_TEXT), self.files("bpe", LM_TEXT)))
        vocabulary.encode_missing(self.workspace, files, self.folder / "spm.model")
        texts = {"train": [news["train"], bpe / LM_TEXT], "valid": [news["valid"]]}
        with binarize.making_folder(self.folder / "lm.en") as work:
            log = self.folder / "logs" / "lm.en.log"
            return ids.binarize_sentences(self.workspace, work, texts, self.folder / "dict.txt", log)

    def pairs(self) -> Outcome:
        """Articles and summaries for fairseq-train."""
        bpe, dictionary = self.folder / "bpe", self.folder / "dict.txt"
        train = bpe / f"train.{SIDES[0]}", bpe / f"train.{SIDES[1]}"
        pairs = ids.Pairs(SIDES, train, bpe / "valid", [bpe / "test"], (dictionary, dictionary))
        with binarize.making_folder(self.folder / "bitext-all") as work:
            return ids.binarize_pairs(self.workspace, work, pairs, None, self.folder / "logs" / "bitext-all.log")


def cut(articles: Iterable[str]) -> Iterator[str]:
    """The first 400 tokens of each article."""
    return (" ".join(article.split(" ", ARTICLE_TOKENS)[:ARTICLE_TOKENS]) for article in articles)


def story_lines(paths: list[Path], names: set[str]) -> Iterator[str]:
    """Each paragraph and each highlight of these stories."""
    for name, text in stories(paths):
        if name in names:
            article, highlights = parse(text)
            yield from article
            yield from highlights


def stages(workspace: Workspace) -> list[Stage]:
    """All stages in order."""
    return Steps(workspace).stages()
