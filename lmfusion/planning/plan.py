"""Put the plan of a training together: what is asked, what it needs, how long it takes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.planning.cost import Cost, count
from lmfusion.planning.machines import Machine
from lmfusion.planning.memory import Memory, checkpoint_bytes, checkpoints_kept, precision, training_memory
from lmfusion.planning.model import Request, file_symbols, read_flags
from lmfusion.planning.parameters import Part, parts
from lmfusion.planning.text import Text, binarized_bytes, made_up, prepared
from lmfusion.planning.words import languages_of


@dataclass(frozen=True)
class Asked:
    """Hold what the plan is for.

    Attributes:
        flags: of fairseq-train, without the data.
        types: vocabulary size, where there is no data yet.
        data: prepared folders, joined by colons, or None.
        tokens: of the training text, or None.
        length: tokens of a sentence.
        gpus: number of processes, each with a GPU.
        machine: what each of them is.
        share: of its peak that training reaches.
        beam: hypotheses of a sentence in decoding.
    """

    flags: Sequence[str]
    types: int
    data: str | None
    tokens: int | None
    length: int
    gpus: int
    machine: Machine
    share: float
    beam: int


@dataclass(frozen=True)
class Plan:
    """A plan; bytes, multiply-adds and hours.

    Attributes:
        architecture, precision: of the training.
        parameters: by part.
        memory: of one process, by part.
        train_macs: multiply-adds of training a token.
        read_macs: of reading the source, by token; of the whole model where it cannot write.
        write_macs: of decoding a token with the beam, all hypotheses together; None: it cannot write.
        tokens_per_update: of all processes, at most.
        updates, epochs: of the training; epochs read all shards, and are None where the amount of text is not known.
        tokens_per_second: of all processes.
        hours: of the training.
        data_bytes: of the binarized text.
        checkpoint_bytes, checkpoints: size of one, and number of those that are kept.
    """

    architecture: str
    precision: str
    parameters: list[Part]
    memory: Memory
    train_macs: float
    read_macs: float
    write_macs: float | None
    tokens_per_update: int
    updates: int
    epochs: float | None
    tokens_per_second: float
    hours: float
    data_bytes: int | None
    checkpoint_bytes: int
    checkpoints: int

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, ready for JSON."""
        return asdict(self)


def make_plan(asked: Asked) -> Plan:
    """Plan a training.

    Raises:
        InputError: if flags or data cannot be used, or the length of the training is not given.
    """
    with tempfile.TemporaryDirectory() as folder:
        if asked.data:
            text = prepared(asked.data, (languages_of(asked.flags) or (None, None))[1])
        else:
            symbols = file_symbols(asked.flags)
            text = made_up(Path(folder), asked.types, asked.tokens, asked.length, symbols)
        request = read_flags(asked.flags, text, asked.gpus)
        model, vocabulary = request.build(meta=True), len(request.task.target_dictionary)
        return _plan(asked, text, request, parts(model), count(request, asked.length), vocabulary)


def _plan(asked: Asked, text: Text, request: Request, found: list[Part], cost: Cost, vocabulary: int) -> Plan:
    cfg = request.cfg
    weights, trained = (sum(getattr(part, name) for part in found) for name in ("parameters", "trained"))
    batch = _batch(cfg, asked.length)
    an_update = batch * asked.gpus * int(cfg.optimization.update_freq[0])
    if an_update < 1:
        raise InputError(f"an update of {an_update} tokens: give numbers above 0 as --max-tokens and --update-freq.")
    tokens = text.tokens if asked.tokens is None else asked.tokens
    updates = _updates(cfg, tokens, text.shards, an_update)
    epochs = None if tokens is None else updates * an_update / tokens
    peak = asked.machine.single if precision(cfg.common).name == "fp32" else asked.machine.half
    speed = asked.gpus * peak * 1e12 * asked.share / (2 * cost.train)
    return Plan(
        architecture=request.arch,
        precision=precision(cfg.common).name,
        parameters=found,
        memory=training_memory(cfg, weights, trained, cost.saved, batch, asked.length, vocabulary),
        train_macs=cost.train,
        read_macs=cost.read,
        write_macs=None if cost.write is None else cost.write * (asked.beam if request.sequence_to_sequence else 1),
        tokens_per_update=an_update,
        updates=updates,
        epochs=epochs,
        tokens_per_second=speed,
        hours=updates * an_update / speed / 3600,
        data_bytes=binarized_bytes(text, vocabulary, 1 + request.sequence_to_sequence),
        checkpoint_bytes=checkpoint_bytes(cfg, weights, trained),
        checkpoints=checkpoints_kept(cfg, _epochs_ended(cfg, epochs and text.shards * epochs, updates), updates),
    )


def _batch(cfg: Any, length: int) -> int:
    """Return the tokens of a batch of one process."""
    sizes = [int(cfg.dataset.max_tokens)] if cfg.dataset.max_tokens else []
    if cfg.dataset.batch_size:
        sizes.append(int(cfg.dataset.batch_size) * length)
    if sizes:
        return min(sizes)  # of two limits a batch keeps both
    raise InputError("no size of a batch: give --max-tokens N (or --batch-size) among the flags of fairseq-train.")


def _updates(cfg: Any, tokens: int | None, shards: int, an_update: int) -> int:
    """Return the number of updates until the first limit is reached; an epoch of fairseq's reads one shard."""
    most = int(cfg.optimization.max_update)
    epochs = int(cfg.optimization.max_epoch)
    if epochs > 0 and tokens is not None:
        by_epochs = max(1, epochs * tokens // shards // an_update)
        return min(most, by_epochs) if most > 0 else by_epochs
    if most > 0:
        return most
    raise InputError(
        "the length of the training is not known: give --max-update N among the flags of fairseq-train, or --max-epoch "
        "N together with --tokens or --data."
    )


def _epochs_ended(cfg: Any, read: float | None, updates: int) -> int:
    """Return how many of fairseq's epochs end; ``read`` are those that full updates have read, None: not known."""
    if read is None:
        return 0
    most = int(cfg.optimization.max_update)
    epochs = int(cfg.optimization.max_epoch)
    # The last of --max-epoch ends with an update that is not full, and which is not among those counted.
    return epochs if epochs > 0 and (most <= 0 or updates < most) else int(read)
