"""WMT'18 English-Turkish: SETIMES2 unfiltered; the LM's BPE on the English side, one of its own on the Turkish side."""

from __future__ import annotations

from lmfusion.text.textio import copy_file
from paper_corpora import vocabulary, wmt18_ende
from paper_corpora.stages import Outcome, Stage
from paper_corpora.translation import Steps, Translation
from paper_corpora.workspace import Workspace

CORPUS = "wmt18_entr"
EXPECTED_PAIRS = 208_000
VALID, TEST = "newstest2017", "newstest2018"
ENTR = Translation(
    corpus=CORPUS,
    langs=("en", "tr"),
    bitext={"setimes2": ("SETIMES.en-tr.en", "SETIMES.en-tr.tr")},
    test_sets={name: (f"test/{name}-entr-src.en.sgm", f"test/{name}-entr-ref.tr.sgm") for name in (VALID, TEST)},
    copies={"valid": VALID, "test": TEST},
    test_names={"test": TEST},
)


def stages(workspace: Workspace) -> list[Stage]:
    """All stages in order; the joint BPE of English and German is made first where it is not there."""
    steps, folder = Steps(workspace, ENTR), workspace.folder(CORPUS)
    english, turkish = (folder / "spm.model", folder / "dict.txt"), (folder / "spm.tr.model", folder / "dict.tr.txt")
    found = [steps.unpack(f", paper: {EXPECTED_PAIRS:,}"), steps.unpack_test_sets()]
    found += [steps.tokenize("bitext", VALID, TEST), *wmt18_ende.joint_bpe(workspace)]

    def copy() -> Outcome:
        joint = workspace.folder(wmt18_ende.CORPUS)
        for path in reversed(english):
            copy_file(joint / path.name, path)
        return Outcome(f"the joint BPE, from {joint}", {})

    def learn() -> Outcome:
        return vocabulary.learn(workspace, [steps.path("tok", "bitext.tr")], workspace.scale.turkish_bpe, *turkish)

    found.append(steps.stage("spm.model", english, copy, 2_000_000))
    found.append(steps.stage("spm.tr.model", turkish, learn, 200_000_000))
    found.append(steps.encode({"en": english[0], "tr": turkish[0]}, "bitext", VALID, TEST))
    pairs = steps.pairs(folder / "bpe", "bitext", VALID, (english[1], turkish[1]))
    return [*found, steps.binarize("bitext-all", pairs, None, steps.size)]
