"""Make folders of Hugging Face models: tiny, with random weights, and tokenizers trained on the embedded corpus."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from lmfusion.text.import_transformers import import_transformers

transformers = import_transformers() if find_spec("transformers") else None

CORPUS = Path(__file__).resolve().parents[1] / "data-prep" / "debian" / "en-de"
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
LENGTH = {"max_position_embeddings": 60}
ENCODER = {**SIZES, **LENGTH}
RELATIVE = {**ENCODER, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
DECODER = {**ENCODER, "num_key_value_heads": 1, "head_dim": 8}
WORDPIECE, BYTES, UNIGRAM = "wordpiece", "bytes", "unigram"
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2}
PAIR = {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in
        {"layers": 2, "attention_heads": 2, "ffn_dim": 24}.items()}  # fmt: skip
BART = {"d_model": 16, **PAIR, **LENGTH}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": (WORDPIECE, ENCODER),
    "roberta": (BYTES, ENCODER),
    "xlm-roberta": (UNIGRAM, ENCODER),
    "camembert": (UNIGRAM, ENCODER),
    "electra": (WORDPIECE, {**ENCODER, "embedding_size": 8}),
    "deberta": (BYTES, RELATIVE),
    "deberta-v2": (UNIGRAM, {**RELATIVE, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}),
    "distilbert": (WORDPIECE, {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, **LENGTH}),
    "modernbert": (WORDPIECE, {**ENCODER, "global_attn_every_n_layers": 2, "local_attention": 6}),
    "t5": (UNIGRAM, T5),
    "mt5": (UNIGRAM, T5),
    "umt5": (UNIGRAM, T5),
    "bart": (BYTES, BART),
    "mbart": (UNIGRAM, BART),
    "m2m_100": (UNIGRAM, BART),
    "gpt2": (BYTES, {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 60}),
    "gpt_neox": (BYTES, {**ENCODER, "rotary_pct": 0.5}),
    "llama": (UNIGRAM, DECODER),
    "mistral": (UNIGRAM, {**DECODER, "sliding_window": 5}),
    "qwen2": (BYTES, DECODER),
    "qwen3": (BYTES, DECODER),
}
"""Of each supported model type, the kind of its tokenizer and tiny settings."""
CAUSAL = ("gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3")


def corpus_lines(language: str, count: int) -> Iterator[str]:
    with lzma.open(CORPUS / f"train.{language}.xz", "rt", encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for _, line in zip(range(count), stream))


def trained_tokenizer(kind: str, model_type: str) -> Any:
    """A tokenizer as models of that type have it, trained on 600 sentences."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    text = [*corpus_lines("en", 300), *corpus_lines("de", 300)]
    wrap = transformers.PreTrainedTokenizerFast
    if kind == WORDPIECE:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
        made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        made.train_from_iterator(text, trainers.WordPieceTrainer(vocab_size=500, special_tokens=special))
        made.post_processor = processors.TemplateProcessing(
            "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special))
        return wrap(tokenizer_object=made, **names)
    special = (
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        if model_type not in ("gpt2", "qwen2", "qwen3", "gpt_neox")
        else ["<|endoftext|>"]
    )
    if kind == BYTES:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        made.train_from_iterator(
            text,
            trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
        )
    else:
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        made.train_from_iterator(
            text,
            trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>", show_progress=False),
        )
    if len(special) == 1:
        return wrap(tokenizer_object=made, bos_token=special[0], eos_token=special[0], unk_token=special[0])
    frame = "<s> $A" if model_type in CAUSAL else "$A </s>" if model_type.endswith("t5") else "<s> $A </s>"
    pair = f"{frame} {frame.replace('$A', '$B').replace('<s>', '</s>')}"  # in one segment, as RoBERTa's
    made.post_processor = processors.TemplateProcessing(frame, pair, special_tokens=[("<s>", 0), ("</s>", 2)])
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special))
    return wrap(tokenizer_object=made, **names)


def save_model(model_type: str, folder: Path, head: str = "AutoModel", **settings: Any) -> None:
    """Write a model with random weights and its tokenizer, as transformers does."""
    kind, tiny = MODELS[model_type]
    tokenizer = trained_tokenizer(kind, model_type)
    pad = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": pad}
    ids |= {"cls_token_id": 2, "sep_token_id": 3} if model_type == "modernbert" else {}
    values = {"vocab_size": len(tokenizer), **ids, **tiny, **settings}
    torch.manual_seed(7)
    model = getattr(transformers, head).from_config(transformers.AutoConfig.for_model(model_type, **values))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
