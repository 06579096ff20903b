"""Other programs that run the baseline: its weights in Hugging Face's Marian and in CTranslate2.

Each translates the same sentences with the same beam to hypotheses of one length. Marian and fairseq end them by </s>,
with a step of its own; CTranslate2 stops before it. Only fairseq counts the probability of that </s>, which can change
the order of the last hypotheses: a peer's best one has to be among all of the baseline's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from models import dictionary_of_size
from results import Table
from steps import EOS, PAD
from timing import Spread
from torch import Tensor

from lmfusion.text.import_transformers import import_transformers

Best = Callable[[], list[list[int]]]
"""Translates; returns the words of the best hypothesis of each sentence, as numbers, without </s>."""
MARIAN, CTRANSLATE, INT8 = "HF Marian", "CTranslate2", "CTranslate2, int8"
COLUMNS = ["", "target tokens/s", "speed / fairseq transformer", "best hypothesis among the baseline's"]


def peers(model: Any, source: Tensor, args: argparse.Namespace) -> dict[str, Best]:
    """Build each of them from the baseline.

    Args:
        model: the baseline, in float32 on a CPU.
        source: B x S, sentences with </s> at their end, padded on the left.
        args: the benchmark's flags.
    """
    rows = [row[row != PAD].tolist() for row in source]
    ours = {CTRANSLATE: _ctranslate(model, rows, args, "float32"), INT8: _ctranslate(model, rows, args, "int8")}
    return {MARIAN: _marian(model, rows, args), **ours}


def _marian(model: Any, rows: list[list[int]], args: argparse.Namespace) -> Best:
    library = import_transformers()
    cfg, positions = model.decoder.cfg, model.max_positions()[0]
    shape = {
        f"{side}_{theirs}": getattr(getattr(cfg, side), ours)
        for side in ("encoder", "decoder")
        for theirs, ours in (("layers", "layers"), ("ffn_dim", "ffn_embed_dim"), ("attention_heads", "attention_heads"))
    }
    words = len(dictionary_of_size(args.sizes.vocabulary))
    special = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": EOS, "forced_eos_token_id": EOS}
    theirs = library.MarianMTModel(
        library.MarianConfig(
            vocab_size=words,
            decoder_vocab_size=words,
            d_model=cfg.encoder.embed_dim,
            activation_function=cfg.activation_fn,
            max_position_embeddings=positions,
            scale_embedding=True,
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=False,
            **shape,
            **special,
        )
    ).eval()
    weights = {f"model.{name}": value for name, value in model.state_dict().items() if "output_projection" not in name}
    weights["lm_head.weight"] = model.decoder.output_projection.weight
    wanted = theirs.state_dict()
    missing = [name for name in wanted if name not in weights and "positions" not in name and "bias" not in name]
    assert not missing, missing
    theirs.load_state_dict({name: weights[name] for name in wanted if name in weights}, strict=False)
    for side in (model.encoder, model.decoder):
        table = side.embed_positions.get_embedding(positions + PAD + 1, cfg.encoder.embed_dim, PAD)
        getattr(theirs.model, "encoder" if side is model.encoder else "decoder").embed_positions.weight.data = table[
            PAD + 1 :
        ]
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
    lengths = {"min_new_tokens": args.length, "max_new_tokens": args.length + 1}
    settings = library.GenerationConfig(
        num_beams=args.beam, early_stopping=False, do_sample=False, **lengths, **special
    )

    def best() -> list[list[int]]:
        found = theirs.generate(ids, attention_mask=ids.ne(PAD).long(), generation_config=settings)
        return [[each for each in row if each not in (PAD, EOS)] for row in found.tolist()]

    return best


def _ctranslate(model: Any, rows: list[list[int]], args: argparse.Namespace, kind: str) -> Best:
    import ctranslate2

    from lmfusion.inference.ctranslate import specification

    dictionary = dictionary_of_size(args.sizes.vocabulary)
    spec = specification(model, dictionary, dictionary)
    spec.validate()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(str(Path(folder)))
        threads = int(os.environ.get("OMP_NUM_THREADS") or args.threads)
        theirs = ctranslate2.Translator(folder, compute_type=kind, intra_threads=threads)
    texts = [[dictionary[each] for each in row[:-1]] for row in rows]
    never = {"suppress_sequences": [[dictionary[PAD]]]}  # as fairseq's search
    lengths = {"min_decoding_length": args.length, "max_decoding_length": args.length}

    def best() -> list[list[int]]:
        found = theirs.translate_batch(texts, beam_size=args.beam, max_batch_size=len(texts), **never, **lengths)
        return [[dictionary.index(symbol) for symbol in result.hypotheses[0]] for result in found]

    return best


def table(title: str, time: Mapping[str, Spread], tokens: Mapping[str, int], same: Mapping[str, str], of: str) -> Table:
    """Return rates of all, and their ratios to one of them: above 1 is faster."""
    made = Table(title, COLUMNS)
    for name, spread in time.items():
        share = tokens[name] / tokens[of]
        ratio = Spread([share / each for each in spread.over(time[of]).values])
        made.rows.append([name, spread.rate(tokens[name]), ratio.ratio(), same.get(name, "")])
    return made
