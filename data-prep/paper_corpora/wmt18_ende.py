"""WMT'18 English-German: bitext without ParaCrawl in nested subsets, and newscrawl of both languages for the LMs."""

from __future__ import annotations

import shutil
from pathlib import Path

from lmfusion.text import binarize, encode_bpe, learn_bpe
from paper_corpora import ids, newscrawl, select_pairs, vocabulary
from paper_corpora.parallel import write_lines
from paper_corpora.stages import Outcome, Stage
from paper_corpora.translation import Steps, Translation
from paper_corpora.workspace import SUBSETS, WHOLE_BITEXT, Workspace

CORPUS = "wmt18_ende"
LANGS = ("en", "de")
EXPECTED_PAIRS = 5_180_000
WHOLE_PAIRS = 5_186_000


def _sides(prefix: str) -> tuple[str, str]:
    return f"{prefix}.en", f"{prefix}.de"


ENDE = Translation(
    corpus=CORPUS,
    langs=LANGS,
    bitext={
        "europarl-v7": _sides("training/europarl-v7.de-en"),
        "commoncrawl": _sides("commoncrawl.de-en"),
        "news-commentary-v13": _sides("training-parallel-nc-v13/news-commentary-v13.de-en"),
        "rapid2016": _sides("rapid2016.de-en"),
    },
    test_sets={
        **{f"newstest{y}": (f"test/newstest{y}-src.en.sgm", f"test/newstest{y}-src.de.sgm") for y in (2012, 2013)},
        "newstest2014": ("test-full/newstest2014-deen-src.en.sgm", "test-full/newstest2014-deen-ref.de.sgm"),
        **{
            f"newstest{y}": (f"test/newstest{y}-ende-src.en.sgm", f"test/newstest{y}-ende-ref.de.sgm")
            for y in range(2015, 2019)
        },
    },
    copies={"test": "newstest2018"},
    test_names={"test": "newstest2018", **{f"test{n}": f"newstest{2011 + n}" for n in range(1, 7)}},
)


def joint_bpe(workspace: Workspace) -> list[Stage]:
    """newscrawl of both languages, and the joint BPE learned on it."""
    folder, mono = workspace.folder(CORPUS), workspace.folder(newscrawl.CORPUS) / "tok"
    texts = [mono / f"mono.train.{lang}" for lang in LANGS]
    model, dictionary, size = folder / "spm.model", folder / "dict.txt", workspace.scale.joint_bpe
    learn = Stage(
        *(CORPUS, "spm.model", (model, dictionary)),
        make=lambda: vocabulary.learn(workspace, texts, size, model, dictionary),
        disk=300 * len(texts) * workspace.scale.bpe_sample,
    )
    return [stage for lang in LANGS for stage in newscrawl.stages(workspace, lang)] + [learn]


def stages(workspace: Workspace, subsets: list[str], bitext_bpe: list[str]) -> list[Stage]:
    """All stages in order.

    Args:
        subsets: names of the subsets to binarize with the joint BPE.
        bitext_bpe: names of those to binarize with a BPE learned on themselves.
    """
    steps, folder = Steps(workspace, ENDE), workspace.folder(CORPUS)
    tests = tuple(ENDE.test_sets)
    dictionary, model = folder / "dict.txt", folder / "spm.model"
    found = [steps.unpack(""), steps.unpack_test_sets(), steps.tokenize("bitext", *tests), select(steps)]
    found += [*joint_bpe(workspace), steps.encode(dict.fromkeys(LANGS, model), "train", "valid", *tests)]
    found += [language_model(workspace, lang) for lang in LANGS]
    for name in subsets:
        size = subset_size(steps, name)
        lines, pairs = workspace.scale.subset(name), steps.pairs(folder / "bpe", "train", "valid", (dictionary,) * 2)
        found.append(steps.binarize(f"bitext-{name}", pairs, lines, size))
    return found + [own_bpe(steps, name) for name in bitext_bpe]


def subset_size(steps: Steps, name: str) -> int:
    """Bytes that a subset takes in fairseq's format, estimated."""
    return round(steps.size * (1 if name == WHOLE_BITEXT else SUBSETS[name] / WHOLE_PAIRS))


def select(steps: Steps) -> Stage:
    """The paper's filter, shuffled, some held out."""

    def make() -> Outcome:
        workspace = steps.workspace
        counts = select_pairs.select(steps.folder, LANGS, workspace.scale.held_out_pairs, workspace.seed)
        left = counts["train"] + counts["valid"]
        dropped = ", ".join(
            f"{name.replace('_', ' ')} {n:,}" for name, n in sorted(counts.items()) if "dropped" in name
        )
        words = f"{left:,} pairs left (paper: {EXPECTED_PAIRS:,}); {dropped}; {counts['valid']:,} held out"
        return Outcome(words, dict(counts))

    outputs = (*steps.files("text", "valid"), *steps.files("tok", "valid", "train"))
    return steps.stage("tok.train", outputs, make, steps.size)


def language_model(workspace: Workspace, lang: str) -> Stage:
    """newscrawl of one language in ids of the joint BPE."""
    folder, tok = workspace.folder(CORPUS), workspace.folder(newscrawl.CORPUS) / "tok"
    size = newscrawl.UNPACKED * sum(workspace.source(f"newscrawl.{year}.{lang}").size for year in newscrawl.YEARS)

    def make() -> Outcome:
        texts = {split: [folder / "bpe" / f"mono.{split}.{lang}"] for split in ("train", "valid")}
        files = {tok / path.name: path for paths in texts.values() for path in paths}
        vocabulary.encode_missing(workspace, files, folder / "spm.model")
        with binarize.making_folder(folder / f"lm.{lang}") as work:
            return ids.binarize_sentences(
                workspace, work, texts, folder / "dict.txt", folder / "logs" / f"lm.{lang}.log"
            )

    return Stage(CORPUS, f"lm.{lang}", (folder / f"lm.{lang}",), make, round(2.9 * size))


def own_bpe(steps: Steps, name: str) -> Stage:
    """A subset in a BPE learned on itself, with that BPE in its folder."""
    lines, target = steps.workspace.scale.subset(name), steps.folder / f"bitext-bpe-{name}"

    def make() -> Outcome:
        with binarize.making_folder(target) as work:
            text = work / "text"
            encode_with_own_bpe(steps, text, lines)
            for made in ("spm.model", "dict.txt"):
                (text / made).replace(work / made)
            pairs = steps.pairs(text, "train", "valid", (work / "dict.txt", work / "dict.txt"))
            outcome = ids.binarize_pairs(
                steps.workspace, work, pairs, lines, steps.folder / "logs" / f"{target.name}.log"
            )
            shutil.rmtree(text)
            return outcome

    return steps.stage(target.name, (target,), make, 4 * subset_size(steps, name))


def encode_with_own_bpe(steps: Steps, text: Path, lines: int | None) -> None:
    """Learn a joint BPE on the first `lines` training pairs, and encode these, valid and the test sets into `text`."""
    workspace = steps.workspace
    train = [text / f"tok.train.{lang}" for lang in LANGS]
    for source, target in zip(steps.files("tok", "train"), train):
        write_lines(target, vocabulary.first_lines(source, lines))
    model = text / "spm.model"
    learn_bpe.learn_to_files(train, workspace.scale.bitext_bpe, workspace.seed, model, text / "dict.txt")
    for path in train:
        encode_bpe.encode_file(path, text / path.name.removeprefix("tok."), model, workspace.workers)
    for path in steps.files("tok", "valid", *ENDE.test_sets):
        encode_bpe.encode_file(path, text / path.name, model, workspace.workers)
