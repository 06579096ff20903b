"""What the paper calls a run: baseline, SHARED, SRC-ELMO, …, told from the command that was recorded."""

from __future__ import annotations

import re

from lmfusion.report.page.command_line import Flags

LM_PRIOR, LSTM, PREFIX_LM = "LM-PRIOR", "LSTM", "PREFIX-LM"
SHALLOW_FUSION = "SHALLOW-FUSION"
PRETRAINED, DENOISING, SECOND_STAGE = "PRETRAINED", "DENOISING", "SECOND-STAGE"
"""Starts from another model: without a language model inside, from a denoiser of the recipes, and with one."""
MADE_UP = {"back": "BACK-TRANSLATION", "self": "SELF-TRAINING", "copied": "COPIED", "distilled": "DISTILLED"}
"""Beginnings of data folders that hold made-up pairs, too (recipes/_made_up.sh), and what they are called."""
BASELINE, SHARED, SHDEMB, OWN_BPE, LEAD = "baseline", "SHARED", "SHDEMB", "bitext-BPE", "Lead"
BASELINES, LSTMS = (BASELINE, f"{BASELINE}+{OWN_BPE}"), (LSTM, f"{LSTM}+{OWN_BPE}")
"""Rows that others may be compared with; those with the language models' symbols come first."""
_FUSIONS = {"elmo": "ELMO", "finetune": "FT", "ft": "FT"}
_MADE_UP = re.compile(rf"/({'|'.join(MADE_UP)})-[^/]*-with-([0-9]+)/bitext-[0-9]+/?$")
_DENOISER = re.compile(r"/(lstm_)?denoiser/")
_CELL = re.compile(r"(src|tgt)_(elmo|ft)(_|$)")

# Order of the paper's Table 4; what it does not have comes after, in the order of the alphabet.
PAPER_ORDER = (
    *(BASELINE, SHARED, f"{SHARED}+{OWN_BPE}", "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT", f"SRC-ELMO+{SHDEMB}"),
)


def is_language_model(flags: Flags) -> bool:
    """Tell whether the command pretrains a language model, or a whole model by denoising."""
    return flags.get("task") in ("language_modeling", "denoising")


def fusions(flags: Flags) -> list[str]:
    """Return the language models' places in the model: SRC-ELMO, TGT-FT, …

    A named architecture (``src_elmo_tiny``) sets the fusion of its side unless a flag says otherwise.
    """
    chosen = {}
    if match := _CELL.match(flags.get("arch") or ""):
        chosen[match[1]] = match[2]
    for side in ("src", "tgt"):
        fusion = flags.get(f"{side}-fusion")
        if fusion is not None:
            chosen[side] = fusion
    used = {side: fusion for side, fusion in chosen.items() if fusion != "none"}
    return [f"{side.upper()}-{_FUSIONS.get(used[side], used[side].upper())}" for side in ("src", "tgt") if side in used]


def name(flags: Flags, generation: Flags | None = None) -> str:
    """Return the strategy of a sequence-to-sequence training, or of the lead baseline, in the paper's words.

    Args:
        flags: of the training, or of what made the output where nothing is trained.
        generation: of fairseq-generate, in which a language model may join.
    """
    if flags.program == "lead.py":
        return f"{LEAD}-{flags.get('sentences') or 1}"
    if flags.get("arch") == "prefix_lm":
        return f"{PREFIX_LM}+INITIALISE" if flags.get("prefix-lm") else PREFIX_LM
    fused = fusions(flags)
    parts = [LSTM, *fused] if (flags.get("arch") or "").startswith("lstm") else list(fused)
    if flags.has("share-all-embeddings") and not fused:
        parts.append(SHARED)
    parts = parts or [BASELINE]
    if flags.has("share-decoder-input-output-embed"):
        parts.append(SHDEMB)
    if flags.get("criterion") == "lm_prior":
        parts.append(LM_PRIOR)
    if before := flags.get("finetune-from-model"):
        parts.append(SECOND_STAGE if fused else DENOISING if _DENOISER.search(before) else PRETRAINED)
    made_up, _ = made_up_pairs(flags)
    beside = [SHALLOW_FUSION] if generation and generation.get("lm-path") else []
    return "+".join([*parts, *([MADE_UP[made_up]] if made_up else []), *beside])


def made_up_pairs(flags: Flags) -> tuple[str, int]:
    """Return how a training's data folder calls the pairs made up beside the real ones, and how many are real.

    Returns:
        "back", "self", "copied" or "distilled"; an empty text and 0 where there are none.
    """
    match = _MADE_UP.search(flags.data or "")
    return (match[1], int(match[2])) if match else ("", 0)


def order(strategy: str) -> tuple[int, str]:
    """Return a key to sort strategies as the paper's tables do; a lead baseline comes first, as in its Table 3."""
    if strategy.startswith(f"{LEAD}-"):
        return -1, strategy
    if strategy in BASELINES:
        return PAPER_ORDER.index(BASELINE), strategy
    return (PAPER_ORDER.index(strategy) if strategy in PAPER_ORDER else len(PAPER_ORDER)), strategy
