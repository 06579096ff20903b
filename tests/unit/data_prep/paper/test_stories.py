"""CNN-DailyMail: stories, splits by address, highlights sentence by sentence."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import sacremoses
from paper_corpora import cnn_dm, stages, stories
from paper_corpora.workspace import Workspace

from lmfusion.scoring import rouge
from lmfusion.text import learn_bpe, textio

STORY = '(CNN) -- It rained\n\nIt said "so."\n\n\n@highlight\n\nRain ¶ fell\n\n@highlight\n\nNobody  minded!\n'


def test_a_story_is_paragraphs_and_highlights_with_full_stops() -> None:
    assert stories.parse(STORY) == (["(CNN) -- It rained.", 'It said "so."'], ["Rain fell.", "Nobody minded!"])
    assert stories.parse("@highlight\n\nOnly this") == ([], ["Only this."])


def test_the_marker_survives_moses_and_separates_sentences_for_rouge() -> None:
    summary = f" {stories.MARKER} ".join(stories.parse(STORY)[1])
    tokens = sacremoses.MosesTokenizer("en").tokenize(summary, escape=False)
    assert tokens == ["Rain", "fell", ".", stories.MARKER, "Nobody", "minded", "!"]
    assert sacremoses.MosesDetokenizer("en").detokenize(tokens, unescape=False) == summary
    swapped = f" {stories.MARKER} ".join(reversed(stories.parse(STORY)[1]))
    assert rouge.score([swapped], [summary], stories.MARKER).means["rougeL"].f1 == 1.0
    assert rouge.score([swapped], [summary], None).means["rougeL"].f1 < 1.0


def test_the_marker_is_one_symbol_of_a_bpe_whose_text_does_not_have_it(tmp_path: Path) -> None:
    """As in training: neither newscrawl nor the sentences of the stories have it."""
    (tmp_path / "text").write_text("Rain fell on the plain .\nNobody minded the rain !\n" * 20, encoding="utf-8")
    symbols = {}
    for name, words in (("with", (stories.MARKER,)), ("without", ())):
        model, dictionary = tmp_path / f"{name}.model", tmp_path / f"{name}.txt"
        learn_bpe.learn_to_files([tmp_path / "text"], 40, 1, model, dictionary, words)
        symbols[name] = learn_bpe.load_processor(model).encode("Rain fell . ¶ Nobody minded !", out_type=str)
        assert ("▁¶ 1" in dictionary.read_text("utf-8").splitlines()) == bool(words)
        assert len(list(textio.read_lines(dictionary))) == 40
    assert symbols["with"].count("▁¶") == 1
    assert "".join(symbols["with"]).replace("▁", " ") == " Rain fell . ¶ Nobody minded !"
    assert "▁¶" not in symbols["without"]


def test_a_story_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cnn_stories.tgz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("cnn/stories/aa.story")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"\xe9"))
    with pytest.raises(textio.DataError, match=r"cnn_stories\.tgz: cnn/stories/aa\.story: not UTF-8"):
        list(stories.stories([path]))


def test_the_splits_are_those_of_the_lists_in_their_order(workspace: Callable[..., Workspace]) -> None:
    here = workspace()
    stages.run(here, cnn_dm.stages(here)[:2])
    text = here.folder("cnn_dm") / "text"
    for split, name in cnn_dm.LISTS.items():
        listed = stories.read_split(here.path(name), here.source(name))
        told = dict(stories.stories([here.path(archive) for archive in cnn_dm.ARCHIVES]))
        parsed = [stories.parse(told[story]) for story in listed]
        kept = [(article, highlights) for article, highlights in parsed if article]
        assert list(textio.read_lines(text / f"{split}.article")) == [" ".join(article) for article, _ in kept]
        summaries = list(textio.read_lines(text / f"{split}.summary"))
        assert list(map(stories.sentences, summaries)) == [highlights for _, highlights in kept]
        assert len(parsed) - len(kept) == (2 if split == "train" else 0)
    assert not list(text.glob("*unsorted*"))


def test_articles_are_cut_to_400_tokens() -> None:
    long = " ".join(map(str, range(401)))
    assert [len(article.split()) for article in cnn_dm.cut([long, "a b", long[:-4]])] == [400, 2, 400]
    assert next(cnn_dm.cut([long])).endswith(" 399")


def one_story(path: Path, name: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(f"cnn/stories/{name}.story")
        info.size = len(STORY.encode())
        archive.addfile(info, io.BytesIO(STORY.encode()))
    return path


def test_a_listed_story_that_is_in_no_archive_is_named(tmp_path: Path) -> None:
    path = one_story(tmp_path / "cnn_stories.tgz", "aa")
    splits = stories.Splits(tmp_path / "text", {"train": ["aa", "bb"]})
    with pytest.raises(
        textio.DataError, match=r"1 of 2 stories of the list of train are in no archive, e\.g\. bb\.story"
    ):
        splits.write([path])
    assert not list((tmp_path / "text").iterdir())


def test_a_list_of_another_length_is_refused(workspace: Callable[..., Workspace], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("http://x/1\nhttp://x/2\n", encoding="utf-8")
    row = workspace().source("cnn_dm.urls.val")
    with pytest.raises(textio.DataError, match=r"2 addresses instead of 10\. .*--local cnn_dm\.urls\.val=PATH"):
        stories.read_split(tmp_path / "list", row)
