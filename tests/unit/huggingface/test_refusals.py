"""Folders and checkpoints that are not what they say are refused in one line, and need nothing but themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.budget import building_from
from lmfusion.errors import InputError
from lmfusion.lm.loading import build, describe

transformers = pytest.importorskip("transformers")

Saved = Callable[[str], Path]


def change(folder: Path, **values: Any) -> None:
    """Edit config.json."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta", "gpt2"])
@torch.no_grad()
def test_a_model_is_whole_without_its_folder(saved_models: Saved, tmp_path: Path, model_type: str) -> None:
    """Description, weights, symbols, table and tokenizer, read back with weights_only."""
    text = "A file, with <s> and two  spaces."
    lm = lmfusion.load_lm(shutil.copytree(saved_models(model_type), tmp_path / "moved"))
    torch.save({"lm": json.dumps(describe(lm)), "symbols": lm.symbols, "weights": lm.state_dict()}, tmp_path / "lm.pt")
    expected = lm.top_state(lm.encode(text))
    shutil.rmtree(tmp_path / "moved")
    kept = torch.load(tmp_path / "lm.pt", weights_only=True)
    again = build(json.loads(kept["lm"]), kept["symbols"])
    again.load_state_dict(kept["weights"])
    assert torch.equal(again.encode(text), lm.encode(text))
    assert again.decode(again.encode(text)) == lm.decode(lm.encode(text))
    torch.testing.assert_close(again.eval().top_state(again.encode(text)), expected, rtol=0, atol=0)
    assert describe(again)["transformers"] == transformers.__version__


def test_missing_weights_are_an_error_and_those_of_heads_are_left_out(make_folder: Any) -> None:
    folder = make_folder("bert", head="AutoModelForMaskedLM")
    lm = lmfusion.load_lm(folder)  # it has the weights of a head, and no pooler
    assert lm.num_layers == 2
    change(folder, num_hidden_layers=3)
    with pytest.raises(InputError, match=r"lacks 16 weights: .*layer\.2\."):
        lmfusion.load_lm(folder)
    change(folder, num_hidden_layers=1)
    with pytest.raises(InputError, match=r"more layers .* 16 weights"):
        lmfusion.load_lm(folder)


@torch.no_grad()
def test_a_pair_of_encoder_and_decoder_is_read_without_its_decoder_and_alone(make_folder: Any, tmp_path: Path) -> None:
    folder = make_folder("t5", head="AutoModelForSeq2SeqLM")
    lm = lmfusion.load_lm(folder)
    tokens = lm.encode("A file.")
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).get_encoder().eval()
    expected = theirs(input_ids=lm.vocabulary.to_model(tokens)).last_hidden_state
    torch.testing.assert_close(lm.top_state(tokens), expected, rtol=1e-5, atol=1e-5)
    assert not [name for name in lm.state_dict() if "decoder" in name]
    alone = tmp_path / "alone"  # as T5EncoderModel saves it
    transformers.T5EncoderModel.from_pretrained(folder).save_pretrained(alone)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, alone)
    torch.testing.assert_close(lmfusion.load_lm(alone).top_state(tokens), expected, rtol=1e-5, atol=1e-5)
    change(folder, num_layers=3)
    with pytest.raises(InputError, match=r"lacks 8 weights: .*block\.2\."):
        lmfusion.load_lm(folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "mamba"}, "mamba.*were tested: bart, bert"),
        ({"model_type": None}, "were tested"),
        ({"hidden_size": 32}, "cannot be read|other shapes"),
        ({"hidden_act": "os.system"}, "cannot be read"),
        ({"num_attention_heads": 3}, "cannot be read"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "quantized|cannot be read"),
        ({"is_decoder": True}, "turned into a decoder"),
    ],
    ids=str,
)
def test_a_config_that_does_not_fit_is_refused(make_folder: Any, values: dict[str, Any], message: str) -> None:
    folder = make_folder("bert")
    change(folder, **values)
    with pytest.raises(InputError, match=message):
        lmfusion.load_lm(folder)


def test_code_in_a_folder_is_never_run(make_folder: Any, tmp_path: Path) -> None:
    folder = make_folder("bert")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    change(folder, auto_map={"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"})
    lmfusion.load_lm(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_or_missing_file_is_one_line(make_folder: Any, name: str) -> None:
    folder = make_folder("gpt2")
    whole = (folder / name).read_bytes()
    for content in (whole[: len(whole) // 2], b"", None):
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        with pytest.raises(InputError, match="gpt2"):
            lmfusion.load_lm(folder)


def test_an_adapter_and_a_tokenizer_of_another_size_are_refused(make_folder: Any) -> None:
    folder = make_folder("bert", vocab_size=480)
    with pytest.raises(InputError, match="480 rows"):
        lmfusion.load_lm(folder)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="adapter"):
        lmfusion.load_lm(folder)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_size": 1 << 20},
        {"num_hidden_layers": 10**9, "hidden_size": 2},
        {"vocab_size": 1 << 40},
        {"hidden_act": []},
    ],
    ids=str,
)
def test_a_description_of_a_huge_or_senseless_model_is_refused_before_memory_is_taken(
    saved_models: Saved, tmp_path: Path, settings: dict[str, Any]
) -> None:
    lm = lmfusion.load_lm(saved_models("bert"))
    description = describe(lm)
    description["settings"] = {**description["settings"], **settings}
    (tmp_path / "small.pt").write_bytes(bytes(1000))
    with pytest.raises(InputError), building_from([tmp_path / "small.pt"]):
        build(description, lm.symbols)


def test_an_encoder_is_refused_on_a_target_side_and_a_family_takes_its_own_types_alone(saved_models: Saved) -> None:
    assert lmfusion.load_lm(saved_models("bert")).sees_future
    assert not lmfusion.load_lm(saved_models("gpt2")).sees_future
    description = {**describe(lmfusion.load_lm(saved_models("bert"))), "family": "huggingface_causal"}
    with pytest.raises(InputError, match="bert is no causal"):
        build(description, lmfusion.load_lm(saved_models("bert")).symbols)


def test_a_name_that_is_no_folder_is_refused_with_the_command_that_downloads_it() -> None:
    with pytest.raises(InputError, match="hf download FacebookAI/xlm-roberta-base --local-dir xlm-roberta-base"):
        lmfusion.load_lm("FacebookAI/xlm-roberta-base")


def test_the_licence_is_that_of_the_model_card(make_folder: Any) -> None:
    folder = make_folder("bert")
    assert lmfusion.load_lm(folder).config["licence"] == "unknown"
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\nlicense: none\n")
    assert "licence apache-2.0" in lmfusion.load_lm(folder).title


@pytest.mark.slow
def test_transformers_is_imported_for_these_models_alone_and_its_absence_is_one_line(saved_models: Saved) -> None:
    code = (
        "import sys, lmfusion\n"
        "lmfusion.load_lm\n"
        "assert 'transformers' not in sys.modules\n"
        "sys.modules['transformers'] = None\n"
        "try: lmfusion.load_lm(sys.argv[1])\n"
        "except lmfusion.InputError as error: print('REFUSED', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved_models("bert"))], capture_output=True, text=True, check=False
    )
    assert "REFUSED" in done.stdout, done.stderr[-2000:]
    assert "pip install lmfusion[hf]" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("error", ["OSError('libc10_cuda.so: cannot open')", "RuntimeError('no such operator')"])
def test_transformers_can_be_imported_beside_a_torchaudio_that_cannot(tmp_path: Path, error: str) -> None:
    (tmp_path / "torchaudio").mkdir()
    (tmp_path / "torchaudio" / "__init__.py").write_text(f"raise {error}\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from lmfusion.text.import_transformers import import_transformers\n"
        "import_transformers(); import_transformers()\n"
        "from transformers import BertModel; print(BertModel.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "BertModel", done.stderr[-2000:]
    assert done.stderr.count("torchaudio does not fit") == 1


def test_a_torchaudio_that_can_be_imported_stays(tmp_path: Path) -> None:
    (tmp_path / "torchaudio.py").write_text("WORKS = True\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from lmfusion.text.import_transformers import hide_broken_torchaudio\n"
        "hide_broken_torchaudio(); import torchaudio; print(torchaudio.WORKS)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("True", "")
