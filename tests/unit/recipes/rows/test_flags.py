"""Each row adds its few flags to the same training, and what is cut, limited and scored is the corpus's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from row_groups import CAUSAL, CLOZE, EARLIER, FOLDERS, LSTMS, NUMBERS, RIVALS, ROWS

from lmfusion.consumers.lstm_config import check_flags
from lmfusion.fusion.combinations import check_combination


@pytest.fixture
def train(recipes: Any, parse: Any) -> Any:
    """Run a row's script; its training without the flags that have to be its last."""

    def common(script: str, flags: str, causal: str = CAUSAL) -> list[str]:
        name = Path(script).stem
        recipes.succeed(script, **NUMBERS)
        command = recipes.command(name)
        check_combination(convert_namespace_to_omegaconf(parse(command)).model)
        own = flags.replace("CLOZE", CLOZE).replace("CAUSAL", causal).split()
        assert command[-len(own) :] == own
        rest = command[: -len(own)]
        rest.remove(f"{recipes.out}/{name}/checkpoints")
        return rest

    return common


@pytest.mark.parametrize("folder", [FOLDERS[0], pytest.param(FOLDERS[1], marks=pytest.mark.slow)])
def test_each_row_adds_its_flags_to_the_same_training(folder: str, recipes: Any, train: Any) -> None:
    causal = CAUSAL if folder == "debian_ende" else f"{recipes.out}/causal.en/checkpoints/checkpoint_best.pt"
    common = {tuple(train(f"{folder}/{name}.sh", flags, causal)) for name, flags in ROWS.items()}
    assert len(common) == 1, "the budget and everything else is the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_a_row_beyond_the_papers_adds_its_flags_too(name: str, train: Any) -> None:
    baseline, rival = (
        train(f"debian_ende/{row}.sh", flags) for row, flags in (("baseline", ROWS["baseline"]), (name, RIVALS[name]))
    )
    assert rival == baseline, "the budget and everything else is the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", EARLIER)
def test_a_row_of_the_years_before_trains_in_the_same_way(name: str, recipes: Any, parse: Any, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for file in ("en-elmo.pt", "en-recurrent.pt", "en-causal.pt", "en-skipgram.vec", "en-cbow.vec"):
        (earlier / file).touch()
    for row in ("baseline", name):
        recipes.succeed(f"debian_ende/{row}.sh", EARLIER=str(earlier), **NUMBERS)
    command, baseline = recipes.command(name), recipes.command("baseline")
    flags = convert_namespace_to_omegaconf(parse(command)).model
    assert flags.encoder_embed_dim == flags.decoder_embed_dim == 192
    if name in LSTMS:
        check_flags(flags)
        own = f"--arch lstm_lmfusion {LSTMS[name]}".replace("CLOZE", CLOZE).split()
        assert command[-len(own) :] == own
    else:
        check_combination(flags)
        assert command[: baseline.index("--save-dir")] == baseline[: baseline.index("--save-dir")]
        assert flags.src_lm.startswith(str(earlier))


def test_synopses_are_cut_limited_and_scored_by_rouge(recipes: Any) -> None:
    recipes.succeed("debian_synopsis/baseline.sh", MAX_SOURCE="77", MIN_LEN="5", MAX_LEN="21")
    for step in ("train", "generate"):
        command = " ".join(recipes.command("baseline", step))
        assert "--truncate-source --max-source-positions 77" in command
        assert "--tokenizer moses_monolingual --moses-lang en" in command
        assert "-s description -t synopsis" in command
    assert "--min-len 5 --max-len-a 0 --max-len-b 21 --lenpen 1 --no-repeat-ngram-size 3" in command
    assert " ".join(recipes.calls()[-1]).endswith(
        f"--reference {recipes.out}/data/text/test.synopsis --target-lang synopsis --metric rouge"
    )


def test_translations_are_neither_cut_nor_limited(recipes: Any) -> None:
    recipes.succeed("debian_ende/baseline.sh")
    words = [word for step in ("train", "generate") for word in recipes.command("baseline", step)]
    assert not {"--truncate-source", "--max-len-b", "--no-repeat-ngram-size"} & set(words)
    assert "--metric" not in recipes.calls()[-1]
