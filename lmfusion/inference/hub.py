"""A trained model as a Python object that translates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, hub_utils
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor

from lmfusion.checkpoint.finding import find_checkpoint
from lmfusion.checkpoint.reading import first_line, model_config, read_checkpoint
from lmfusion.described import translates, why_no_translator
from lmfusion.errors import InputError, naming
from lmfusion.inference.search_settings import (
    check_languages,
    check_limits,
    check_overrides,
    check_rows,
    check_settings,
    check_text,
    check_texts,
    check_tokens,
    why_it_ended,
)
from lmfusion.inference.unknown_symbols import of_model
from lmfusion.lm.precision import single_precision
from lmfusion.lm.symbols import plain_word
from lmfusion.lm.transformer.base import check_beam
from lmfusion.text.kit import from_state
from lmfusion.text.named_files import data_folders, given_bpe, refuse_addresses
from lmfusion.text.opening import clean

_ODD_CONTENT = (
    *(TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError, RuntimeError, OSError),
    *(ImportError, OmegaConfBaseException),
)
"""Exceptions that fairseq raises at a configuration with values of the wrong types."""


class Translator(hub_utils.GeneratorHubInterface):
    """A loaded model that translates: fairseq's hub interface, with sources cut as in training (--truncate-source).

    Attributes:
        after_batch: told the number of sentences of each batch that is translated.
    """

    after_batch: Callable[[int], Any] = staticmethod(lambda sentences: None)

    def encode(self, sentence: str) -> Tensor:
        """Encode text as token ids that end in </s>.

        Args:
            sentence: raw text; it is tokenized and segmented as in training, white space of every kind as one space.

        Returns:
            T ids.

        Raises:
            InputError: if it is no text, or longer than the model takes and was not to be cut.
        """
        check_text(sentence)
        tokens: Tensor = super().encode(clean(sentence))
        limit = self.max_positions[0]
        if len(tokens) <= limit:
            return tokens
        if self.task.cfg.truncate_source:
            return torch.cat([tokens[: limit - 1], tokens[-1:]])
        raise InputError(
            f"a sentence of {len(tokens)} tokens is longer than the {limit} the model takes: cut or split it "
            f"({sentence[:60]}…)."
        )

    def apply_bpe(self, sentence: str) -> str:
        """Turn a tokenized sentence into symbols with spaces between.

        Raises:
            InputError: if the symbols are pieces of words, and there is no BPE that makes them.
        """
        symbols: str = super().apply_bpe(sentence)
        if self.bpe is None and (word := plain_word(symbols.split(), self.src_dict.indices)) is not None:
            raise InputError(
                f"{word!r} is none of the model's symbols, which are pieces of words, and the model holds no BPE: give "
                f'its file, load_model(…, sentencepiece_model="spm.model") or lmfusion translate --spm spm.model.'
            )
        return symbols

    def sample(self, sentences: list[str] | str, beam: int = 1, verbose: bool = False, **kwargs: Any) -> Any:
        """Translate sentences: those without a word stay empty; see fairseq's ``translate``.

        Args:
            sentences: a list of texts, or one text.
            beam: number of hypotheses, of which the best counts.
            verbose: log sources, hypotheses and scores.
            **kwargs: settings of the search (``lenpen=0.6``).

        Returns:
            As many texts; of one text one.

        Raises:
            InputError: if something among them is no text, too long, or a setting is none.
        """
        if isinstance(sentences, str):
            return self.sample([sentences], beam, verbose, **kwargs)[0]
        check_texts(sentences)
        if kwargs.get("nbest", 1) != 1:
            raise InputError(f"nbest {kwargs['nbest']}: translate gives the best text of each sentence; ask generate.")
        tokens, texts, unknown = {}, {}, of_model(self)
        for number, text in enumerate(sentences, start=1):
            if text.strip():
                tokens[number] = self.encode(text)
                unknown.check_source(number, text, int((tokens[number] == self.src_dict.unk()).sum()))
        for number, found in zip(tokens, self.generate(list(tokens.values()), beam, verbose, **kwargs)):
            texts[number] = self.decode(found[0]["tokens"])
            unknown.check_translation(number, [texts[number]])
        unknown.finish()
        return [texts.get(number, "") for number, _ in enumerate(sentences, start=1)]

    def generate(self, tokenized_sentences: Any, beam: int = 5, *args: Any, **kwargs: Any) -> Any:
        """Return the hypotheses of each sentence, best first; an empty list without sentences.

        Args:
            tokenized_sentences: token ids of each sentence (T), or of one.
            beam: number of hypotheses, 1 or more.
            *args: further arguments of fairseq's method.
            **kwargs: settings of the search (``lenpen=0.6``).

        Raises:
            InputError: if ``beam`` is below 1, the search does not have such a setting, or a sentence has no ids.
        """
        check_beam(beam)
        check_settings(kwargs)
        check_rows(tokenized_sentences)
        if not len(tokenized_sentences):
            check_tokens(tokenized_sentences, 0)
            return []
        check_tokens(tokenized_sentences, len(self.src_dict))
        try:
            return super().generate(tokenized_sentences, beam, *args, **kwargs)
        except (AssertionError, ValueError) as error:  # a least length beyond the greatest, groups that do not divide
            raise InputError(why_it_ended(self, first_line(error))) from error

    def _build_batches(self, tokens: list[Tensor], skip_invalid_size_inputs: bool) -> Iterator[dict[str, Any]]:
        """Yield batches of sentences of like length; fairseq's own loader of data sets starts threads and warns."""
        dataset = self.task.build_dataset_for_inference(tokens, torch.tensor([len(each) for each in tokens]))
        indices, overlong = dataset.filter_indices_by_size(dataset.ordered_indices(), self.max_positions)
        if len(overlong) and not skip_invalid_size_inputs:
            raise InputError(
                f"sentence {overlong[0]} has {len(tokens[overlong[0]])} tokens, more than the {self.max_positions[0]} "
                f"the model takes: cut or split it, or give skip_invalid_size_inputs=True."
            )
        own, longest = self.cfg.dataset, max(map(dataset.num_tokens, indices), default=0)  # maybe above the training's
        for batch in dataset.batch_by_size(indices, own.max_tokens and max(own.max_tokens, longest), own.batch_size):
            yield dataset.collater([dataset[index] for index in batch])
            self.after_batch(len(batch))


def load_model(path: str | Path, **overrides: Any) -> Translator:
    """Load a sequence-to-sequence model: ``load_model(path).translate(["A sentence."], beam=5)``.

    Tokenizer, BPE and dictionaries are those the model was trained with: the checkpoint holds them (those written by
    earlier versions name their files). The language models inside come from the checkpoint as well.

    Args:
        path: a checkpoint, a packed model, or a run's folder.
        overrides: configuration values to replace, e.g. ``data="folder/with/dictionaries"`` or
            ``sentencepiece_model="spm.model"``.

    Returns:
        The model, float32 and in evaluation mode, with fairseq's methods (``translate``, ``generate``, ``encode``,
        ``decode``).

    Raises:
        InputError: if there is no checkpoint there, it is damaged, no such model, or lacks its dictionaries or a value.
    """
    checkpoint = find_checkpoint(Path(path), translates)
    state = read_checkpoint(checkpoint)
    if reason := why_no_translator(model_config(checkpoint, state), state["model"]):
        raise InputError(f"{checkpoint} {reason}.")
    with as_input_error(checkpoint), single_precision():
        return _build(checkpoint, state, overrides)


@contextmanager
def as_input_error(checkpoint: Path) -> Iterator[None]:
    """Turn fairseq's exceptions at a checkpoint's configuration or weights into one error that names the checkpoint."""
    try:
        with naming(checkpoint):
            yield
    except InputError:
        raise
    except _ODD_CONTENT as error:
        text = " ".join(str(error).split())[:500].rstrip(".")
        raise InputError(f"{checkpoint} cannot be loaded as a model: {type(error).__name__}: {text}.") from error


def _build(checkpoint: Path, state: dict[str, Any], overrides: dict[str, Any]) -> Translator:
    kit = from_state(checkpoint, state)
    check_overrides(overrides, state["cfg"])
    with tempfile.TemporaryDirectory() as unpacked:
        bpe = kit.unpack(Path(unpacked)) if kit else {}
        if kit and kit.dictionaries:
            own = dict(zip(("source_lang", "target_lang"), kit.languages))
            check_languages(own, overrides)
            overrides = {"data": unpacked, **own, **overrides}
        folders = data_folders(state["cfg"]["task"], overrides)
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(checkpoint)], arg_overrides={**overrides, "data": folders}
        )
        cfg = _completed(cfg, overrides)
        bpe = bpe or given_bpe(cfg, overrides)
        with open_dict(cfg):
            cfg.generation.replace_unk = None  # a file of the run's own machine
            for name, section in (("bpe", bpe), ("tokenizer", kit.tokenizer if kit else {})):
                if section:
                    cfg[name] = {**section, **{key: value for key, value in overrides.items() if key in section}}
                else:
                    refuse_addresses(name, cfg[name], overrides)
        translator = Translator(cfg, task, models).eval()
        check_limits(translator.max_positions)
        return translator


def _completed(cfg: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a configuration with fairseq's defaults, and the values given, where an exported checkpoint lacks them."""
    plain = OmegaConf.to_container(OmegaConf.structured(FairseqConfig()), resolve=True)
    assert isinstance(plain, dict)
    given = {name: cfg[name] for name in cfg if not OmegaConf.is_missing(cfg, name) and cfg[name] is not None}
    search = {name: value for name, value in overrides.items() if name in GenerationConfig.__dataclass_fields__}
    check_settings(search)
    completed = OmegaConf.create({**plain, **given}, flags={"allow_objects": True})  # older models have a Namespace
    completed.generation.update(search)
    return completed
