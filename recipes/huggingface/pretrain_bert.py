#!/usr/bin/env python3
"""Pretrain a small BERT with transformers' own Trainer, and save it as a folder of Hugging Face.

python recipes/huggingface/pretrain_bert.py --text mono.train.en.xz --valid mono.valid.en.xz --out runs/bert

A WordPiece tokenizer that keeps case is learned on the text; the model predicts masked pieces of single sentences, 15%
of them. Killed, the same command resumes at the last thousand updates.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from lmfusion.text import textio
from lmfusion.text.import_transformers import import_transformers

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST = 512
"""Pieces of a sentence, with its frame; longer ones are cut."""
SAVE_EVERY = 1000


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="plain text, a sentence a line (.xz or .gz)")
    parser.add_argument("--valid", type=Path, required=True, help="text to validate on")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--lines", type=int, default=0, help="first N lines of the text (0: all)")
    sizes = {"pieces": 4000, "hidden-size": 192, "intermediate-size": 768, "layers": 8, "heads": 4}
    for name, default in {**sizes, "tokens": 2048, "updates": 12000, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"(default: {default})")
    parser.add_argument("--lr", type=float, default=0.001, metavar="X", help="(default: 0.001)")
    parser.add_argument("--bf16", action="store_true", help="for CPUs and GPUs with units for it")
    return parser.parse_args()


def read(path: Path, lines: int) -> list[str]:
    """Return lines that are not empty, at most so many of the first ones (0: all)."""
    return [line for line in islice(textio.read_lines(path), lines or None) if line.strip()]


def learn_tokenizer(transformers: Any, lines: list[str], pieces: int) -> Any:
    """Return a cased WordPiece tokenizer, learned on these lines."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    made = Tokenizer(models.WordPiece(unk_token=SPECIAL[1]))
    made.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    made.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=pieces, special_tokens=list(SPECIAL)))
    frame = [(symbol, SPECIAL.index(symbol)) for symbol in SPECIAL[2:4]]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=frame)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **dict(zip(names, SPECIAL)))


def batches(tokenizer: Any, lines: list[str], tokens: int, seed: int) -> list[list[dict[str, Any]]]:
    """Return batches of sentences of like length, padding included at most so many pieces each, in random order."""
    encoded = tokenizer(lines, truncation=True, max_length=LONGEST)["input_ids"]
    order = random.Random(seed)
    encoded.sort(key=lambda ids: (len(ids), order.random()))
    found: list[list[dict[str, Any]]] = [[]]
    for ids in encoded:
        if (len(found[-1]) + 1) * len(ids) > tokens and found[-1]:
            found.append([])
        found[-1].append({"input_ids": ids})
    order.shuffle(found)
    return found


def train(transformers: Any, args: argparse.Namespace) -> None:
    """Learn tokenizer and model, and write the folder."""
    lines = read(args.text, args.lines)
    tokenizer = learn_tokenizer(transformers, lines, args.pieces)
    sizes = {"hidden_size": args.hidden_size, "num_hidden_layers": args.layers, "num_attention_heads": args.heads}
    transformers.set_seed(args.seed)
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(
            **{"vocab_size": len(tokenizer), "intermediate_size": args.intermediate_size, **sizes},
            max_position_embeddings=LONGEST,
            pad_token_id=0,
        )
    )
    mask = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=args.seed)
    work = args.out.with_name(f"{args.out.name}.training")
    settings = transformers.TrainingArguments(
        str(work), max_steps=args.updates, learning_rate=args.lr, lr_scheduler_type="linear", weight_decay=0.01,
        warmup_steps=min(500, args.updates // 10), adam_beta2=0.98, per_device_train_batch_size=1,
        per_device_eval_batch_size=1, logging_steps=100, save_steps=SAVE_EVERY, save_total_limit=1, seed=args.seed,
        bf16=args.bf16, use_cpu=not torch.cuda.is_available(), report_to=[],
        remove_unused_columns=False, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=model,
        args=settings,
        data_collator=lambda items: mask(items[0]),
        train_dataset=batches(tokenizer, lines, args.tokens, args.seed),
        eval_dataset=batches(tokenizer, read(args.valid, 0), args.tokens, args.seed),
    )
    trainer.train(resume_from_checkpoint=any(work.glob("checkpoint-*")) or None)
    print(f"validation: {trainer.evaluate()}", flush=True)
    finished = args.out.with_name(f"{args.out.name}.finished")  # a folder is whole or not there
    shutil.rmtree(finished, ignore_errors=True)
    model.float().save_pretrained(finished)
    tokenizer.save_pretrained(finished)
    finished.replace(args.out)
    shutil.rmtree(work)


def main() -> None:
    """Run the command line."""
    train(import_transformers(), parse_args())


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
