"""A causal language model as a folder of Hugging Face: transformers computes its states, logits and tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sacremoses import MosesTokenizer

import lmfusion
from lmfusion import cli
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.lm.interface import LAYERS, TOP
from lmfusion.text.kit import ENTRY, TextKit

transformers = pytest.importorskip("transformers")
PRETRAINED = Path(__file__).resolve().parents[3] / "pretrained"
MOSES = {"_name": "moses_monolingual", "moses_lang": "de", "moses_no_dash_splits": True, "moses_no_escape": True}
BPE = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The embedded German LM with its BPE inside, and what is written of it."""
    folder = tmp_path_factory.mktemp("export")
    kit = TextKit(tokenizer=MOSES, bpe=BPE, bpe_file=(PRETRAINED / "spm.model").read_bytes())
    torch.save({**read_checkpoint(PRETRAINED / "de-causal.pt"), ENTRY: kit.to_state()}, folder / "lm.pt")
    words = ["hf", "export", str(folder / "lm.pt"), "--out", str(folder / "hf"), "--licence", "mit"]
    assert cli.main(words) == 0
    assert cli.main(words) == 2, "it exists"
    return folder / "lm.pt", folder / "hf"


@torch.no_grad()
def test_states_and_logits_are_the_same_in_any_padding(files: tuple[Path, Path]) -> None:
    lm = lmfusion.load_lm(files[0])
    model = transformers.AutoModelForCausalLM.from_pretrained(files[1]).eval()
    texts = ["Das Paket enthält die gemeinsam genutzten Bibliotheken, die benötigt werden.", "Nein"]
    rows = [lm.encode(text)[0] for text in texts]
    width = max(map(len, rows))
    for left in (False, True):
        batch = torch.full((len(rows), width), lm.padding_idx)
        parts = [slice(width - len(row), None) if left else slice(0, len(row)) for row in rows]
        for number, (row, part) in enumerate(zip(rows, parts)):
            batch[number, part] = row
        ours = lm.states(batch, want={LAYERS, TOP})
        theirs = model(batch, attention_mask=batch.ne(lm.padding_idx).long(), output_hidden_states=True)
        assert len(theirs.hidden_states) == lm.num_states
        logits = lm.logits(ours.top)
        for number, part in enumerate(parts):
            for state, other in zip([*ours.layers, logits], [*theirs.hidden_states, theirs.logits], strict=True):
                torch.testing.assert_close(other[number, part], state[number, part], rtol=1e-4, atol=3e-5)


@torch.no_grad()
def test_the_longest_sentence_dropouts_and_symbols_are_the_models(files: tuple[Path, Path]) -> None:
    """</s> stands in front of the sentence, and behind it."""
    lm = lmfusion.load_lm(files[0])
    model = transformers.AutoModelForCausalLM.from_pretrained(files[1]).eval()
    row = torch.tensor([[2, *torch.arange(lm.max_positions()).add(10).tolist(), 2]])
    torch.testing.assert_close(model(row).logits, lm.logits(lm.top_state(row)), rtol=1e-4, atol=3e-5)
    config = model.config
    assert config.max_position_embeddings == row.size(1)
    assert (config.dropout, config.attention_dropout) == (lm.config["dropout"], lm.config["attention_dropout"])
    assert config.dropout != config.attention_dropout, "so that one is not the other"
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (2, 2, 1)
    card = (files[1] / "README.md").read_text(encoding="utf-8")
    assert f"up to {lm.max_positions()} tokens" in " ".join(card.split())


def test_moses_tokens_become_the_same_ids(files: tuple[Path, Path], corpus: Any) -> None:
    lm, tokenizer = lmfusion.load_lm(files[0]), transformers.AutoTokenizer.from_pretrained(files[1])
    moses = MosesTokenizer("de")
    for line in [*corpus("de", 1000), "Zwei  Leerzeichen 中 und ☃☃ Unbekanntes"]:
        words = moses.tokenize(line, aggressive_dash_splits=False, escape=False, return_str=True)
        assert tokenizer(words)["input_ids"] == lm.encode(line)[0, :-1].tolist()
    assert tokenizer.decode(tokenizer("der Hund bellte .")["input_ids"][1:]) == "der Hund bellte ."


def test_the_card_says_what_the_tokenizer_needs(files: tuple[Path, Path]) -> None:
    card = (files[1] / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\n")
    assert "license: mit" in card
    assert "MosesTokenizer('de')" in card


@torch.no_grad()
def test_without_a_bpe_the_tokenizer_takes_symbols(tmp_path: Path) -> None:
    assert cli.main(["hf", "export", str(PRETRAINED / "de-causal.pt"), "--out", str(tmp_path / "hf")]) == 0
    lm, tokenizer = (
        lmfusion.load_lm(PRETRAINED / "de-causal.pt"),
        transformers.AutoTokenizer.from_pretrained(tmp_path / "hf"),
    )
    assert tokenizer("▁der ▁H und")["input_ids"] == lm.encode("▁der ▁H und")[0, :-1].tolist()


def test_another_family_is_refused(tmp_path: Path, capsys: Any) -> None:
    assert cli.main(["hf", "export", str(PRETRAINED / "en-cloze.pt"), "--out", str(tmp_path / "hf")]) == 2
    assert "causal" in capsys.readouterr().err
