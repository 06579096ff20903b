"""Folders of CTranslate2: models without a language model inside, and translation by them.

CTranslate2 runs transformers on CPUs and GPUs, in 8-bit as well (`pip install 'lmfusion[ctranslate2]'`). Its reader of
fairseq's modules is used; this module checks what it wrote, and adds the tokenizer and the BPE.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModelBase

from lmfusion.checkpoint.finding import find_checkpoint
from lmfusion.checkpoint.reading import first_line, read_checkpoint
from lmfusion.described import translates
from lmfusion.errors import InputError
from lmfusion.inference.ctranslate_check import compare
from lmfusion.inference.hub import load_model
from lmfusion.inference.search_settings import check_text
from lmfusion.inference.translate_lines import WINDOW, Done, Hypothesis, Search, warn_of_cut, windows
from lmfusion.inference.unknown_symbols import UnknownSymbols
from lmfusion.text import kit as kits
from lmfusion.text.binarize import making_folder
from lmfusion.text.codec import TextCodec
from lmfusion.text.json_text import parse
from lmfusion.text.line_map import openmp_threads
from lmfusion.text.opening import clean

MODEL, TEXT, BPE = "model.bin", "lmfusion.json", "bpe.model"
SOURCE, SHARED, UNKNOWN = "source_vocabulary.json", "shared_vocabulary.json", "<unk>"
"""CTranslate2's files of symbols, the second where both sides have the same; and what stands for others."""
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh", "gelu_fast": "GELUTanh", "swish": "SWISH"}


def is_folder(path: str | Path) -> bool:
    """Tell whether a path is a folder of CTranslate2."""
    return (Path(path) / MODEL).is_file()


def export(path: str | Path, out: str | Path) -> None:
    """Write a translation model as a folder of CTranslate2 with its tokenizer and BPE.

    Args:
        path: a run's folder, a checkpoint or a packed model.
        out: folder to write.

    Raises:
        InputError: if the model has a language model inside or is none that CTranslate2 computes, does not hold its
            BPE, or the folder is there already.
    """
    library, out = _library(), Path(out)
    if out.exists():
        raise InputError(f"{out} is there already: give another folder, or delete it.")
    checkpoint = find_checkpoint(Path(path), translates)
    translator = load_model(checkpoint).float()
    _check(checkpoint, translator.models[0])
    state = read_checkpoint(checkpoint)
    kit = kits.from_state(checkpoint, state) or kits.collect(state["cfg"])
    if kit is None or not kit.bpe:
        raise InputError(
            f"{checkpoint} does not hold its BPE: write it as one file first, lmfusion pack {path} --spm FILE --data "
            f"FOLDER --out model.lmf, and export that."
        )
    spec = specification(translator.models[0], translator.src_dict, translator.tgt_dict)
    spec.validate()
    with making_folder(out) as work:
        spec.save(str(work))
        _write_kit(kit, translator.max_positions[0], work)
        compare(checkpoint, translator, library.Translator(str(work), compute_type="float32", intra_threads=1))


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError as error:
        raise InputError("ctranslate2 is not installed: pip install 'lmfusion[ctranslate2]'.") from error
    return ctranslate2


def _check(checkpoint: Path, model: Any) -> None:
    """Refuse what CTranslate2 cannot compute."""
    inside = [fusion for fusion, _ in model.fusions()] if hasattr(model, "fusions") else []
    if inside:
        raise InputError(
            f"{checkpoint} has a language model inside, which CTranslate2 cannot run: let it translate the text that "
            f"you have, train a plain transformer on that (distillation, docs/rivals.md), and export the transformer."
        )
    if not isinstance(model, TransformerModelBase):
        raise InputError(f"{checkpoint} is a {type(model).__name__}: CTranslate2 runs transformers only.")
    cfg = model.decoder.cfg
    if model.decoder.adaptive_softmax is not None or cfg.no_cross_attention or cfg.cross_self_attention:
        raise InputError(
            f"{checkpoint} has an adaptive softmax or no attention of its own to the encoder: CTranslate2 has none."
        )
    if cfg.activation_fn not in _ACTIVATIONS:
        raise InputError(f"{checkpoint}: CTranslate2 has no activation {cfg.activation_fn}.")


def specification(model: TransformerModelBase, source: Dictionary, target: Dictionary) -> Any:
    """Return CTranslate2's description of a transformer, with its weights, which then need no gradients.

    Args:
        model: of which :func:`export` would refuse nothing.
        source: symbols of its encoder.
        target: symbols of its decoder.
    """
    from ctranslate2.converters import fairseq as reader
    from ctranslate2.specs import common_spec, transformer_spec

    cfg = model.decoder.cfg
    shared = {
        "activation": getattr(common_spec.Activation, _ACTIVATIONS[cfg.activation_fn]),
        "layernorm_embedding": cfg.layernorm_embedding,
    }
    sides = []
    for stack, settings, kind in (
        (model.encoder, cfg.encoder, transformer_spec.TransformerEncoderSpec),
        (model.decoder, cfg.decoder, transformer_spec.TransformerDecoderSpec),
    ):
        without = settings.normalize_before and stack.layer_norm is None
        extra = {"project_in_out": model.decoder.project_in_dim is not None} if stack is model.decoder else {}
        heads, pre_norm = settings.attention_heads, settings.normalize_before
        sides.append(kind(len(stack.layers), heads, pre_norm=pre_norm, no_final_norm=without, **shared, **extra))
    spec = transformer_spec.TransformerSpec(*sides)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        reader.set_transformer_encoder(spec.encoder, model.encoder)
        reader.set_transformer_decoder(spec.decoder, model.decoder)
    spec.register_source_vocabulary(list(source.symbols))
    spec.register_target_vocabulary(list(target.symbols))
    spec.config.decoder_start_token, spec.config.add_source_eos = spec.config.eos_token, True
    return spec


def _write_kit(kit: kits.TextKit, positions: int, folder: Path) -> None:
    (folder / BPE).write_bytes(kit.bpe_file)
    content = {"tokenizer": kit.tokenizer, "bpe": kit.bpe, "languages": kit.languages, "source_positions": positions}
    (folder / TEXT).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class CTranslator:
    """Translates plain text by a folder that :func:`export` wrote.

    Args:
        folder: of CTranslate2.
        int8: compute linear layers in 8-bit integers.
        device: "cpu" or "cuda".

    Raises:
        InputError: if ctranslate2 is not installed, or the folder is damaged or not one of ours.
    """

    def __init__(self, folder: str | Path, *, int8: bool = False, device: str = "cpu") -> None:
        library, folder = _library(), Path(folder)
        try:
            content = parse((folder / TEXT).read_text(encoding="utf-8"))
            content["bpe_file"] = kits.to_tensor((folder / BPE).read_bytes())
            self._longest = int(content["source_positions"])
            if self._longest < 1:
                raise ValueError(f"source_positions {self._longest}")
            self._known = _vocabulary(folder) - {UNKNOWN}
            kit = kits.from_state(folder / TEXT, {kits.ENTRY: {**content, "languages": [], "dictionaries": []}})
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(
                f"{folder}: {TEXT}, {BPE} or {SHARED} of `lmfusion export --ctranslate2` is missing or damaged "
                f"({error})."
            ) from error
        assert kit is not None
        self._codec = TextCodec(kit)
        kind, threads = "int8" if int8 else "default", openmp_threads()
        try:
            self._translator = library.Translator(str(folder), device=device, compute_type=kind, intra_threads=threads)
        except (RuntimeError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
            raise InputError(f"{folder} cannot be read by CTranslate2: {first_line(error)}.") from error

    def translate_lines(
        self, lines: Iterable[str], search: Search, *, ahead: bool = True, done: Done | None = None
    ) -> Iterator[list[Hypothesis]]:
        """Translate lines as they come in; see :func:`lmfusion.inference.translate_lines.translate_lines`."""
        first, unknown = 1, UnknownSymbols(self._symbols, self._known.__contains__, UNKNOWN, is_dialogue=not ahead)
        for window in windows(lines, search.batch_size * WINDOW) if ahead else ([line] for line in lines):
            numbered = list(enumerate(window, start=first))
            sources = [self._cut(number, unknown.encode(number, line)) for number, line in numbered if line.strip()]
            found = iter(self._translated(sources, search))
            for number, line in numbered:
                hypotheses = next(found) if line.strip() else [Hypothesis("", 0.0)]
                unknown.check_translation(number, (each.text for each in hypotheses))
                yield hypotheses
            first += len(window)
            if done:
                done(len(window))
        unknown.finish()

    def translate(self, lines: list[str], beam: int = 5) -> list[str]:
        """Translate texts; return as many."""
        return [found[0].text for found in self.translate_lines(lines, Search(beam=beam))]

    def _symbols(self, line: str) -> list[str]:
        check_text(line, "a line")
        return self._codec.encode(clean(line)).split()

    def _cut(self, number: int, symbols: list[str]) -> list[str]:
        """Leave out what is longer than the model reads, with the </s> that CTranslate2 adds, and warn of it."""
        if len(symbols) < self._longest:
            return symbols
        warn_of_cut(number, len(symbols) + 1, self._longest)
        return symbols[: self._longest - 1]

    def _translated(self, sources: list[list[str]], search: Search) -> Iterator[list[Hypothesis]]:
        results = self._translator.translate_batch(
            sources,
            beam_size=search.beam,
            num_hypotheses=search.nbest,
            max_batch_size=search.batch_size,
            return_scores=True,
            **_settings(search),
        )
        for result in results:
            texts = (self._codec.decode(" ".join(symbols)) for symbols in result.hypotheses)
            yield [Hypothesis(clean(text), score) for text, score in zip(texts, result.scores)]


def _vocabulary(folder: Path) -> frozenset[str]:
    """Return the symbols of a model's source."""
    file = folder / SOURCE
    return frozenset(parse((file if file.is_file() else folder / SHARED).read_text(encoding="utf-8")))


_NAMES = {"lenpen": "length_penalty", "max_len_b": "max_decoding_length", "min_len": "min_decoding_length",
          "no_repeat_ngram_size": "no_repeat_ngram_size"}  # fmt: skip


def _settings(search: Search) -> dict[str, Any]:
    unknown = [name for name in search.settings if name not in _NAMES]
    if unknown:
        raise InputError(f"CTranslate2 has no setting {unknown[0]}. It has: {', '.join(_NAMES)}.")
    return {"max_decoding_length": 200, **{_NAMES[name]: value for name, value in search.settings.items()}}
