"""``lmfusion plan``: what a training will need, before it is started."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import lmfusion
from lmfusion.commands.parsers import add_command, use_own_parts
from lmfusion.errors import InputError
from lmfusion.planning.words import flag_value

if TYPE_CHECKING:
    from lmfusion.planning.plan import Asked, Plan


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "plan a training: parameters, memory, multiply-adds, hours and disk"
    parser = add_command(
        commands,
        "plan",
        text,
        "lmfusion plan --types 37000 --gpus 8 --tokens 5.6e9 -- --arch bi_transformer_lm_big "
        "--share-decoder-input-output-embed --criterion chunked_cross_entropy --max-tokens 3584 --max-epoch 2 --bf16",
        "lmfusion plan --data data/bin --gpus 1 --gpu A100 -- --arch src_elmo --src-lm bi_transformer_lm_big "
        "--max-tokens 3584 --max-update 50000 --bf16",
        more=". After -- stand the flags of fairseq-train, without its data and paths; --src-lm and --tgt-lm may name "
        "an architecture there instead of a file. Counted on the real model; nothing is trained.",
    )
    _add_text(parser)
    _add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("flags", nargs="*", metavar="-- FLAGS", help="of fairseq-train, --arch among them")
    parser.set_defaults(run=run)


def _add_text(parser: argparse.ArgumentParser) -> None:
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("--types", type=int, metavar="N", help="vocabulary size, where there is no data yet")
    text.add_argument("--data", metavar="DIR[:DIR…]", help="what fairseq-preprocess made; shards joined by colons")
    parser.add_argument("--tokens", type=float, metavar="N", help="of the training text, of one language")
    parser.add_argument("--length", type=int, default=30, metavar="N", help="tokens of a sentence (30)")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpus", type=int, default=1, metavar="N", help="in all machines together (1)")
    parser.add_argument("--gpu", metavar="NAME", help="V100, A100, L40S, H100 (default) or H200")
    parser.add_argument("--peak-tflops", type=float, metavar="N", help="of a processor of another kind")
    share = "of the peak that training reaches: what a benchmark measured (default 0.3, an assumption)"
    parser.add_argument("--share", type=float, metavar="X", help=share)
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="hypotheses in decoding (5)")


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion plan … -- FLAGS``."""
    for name in ("tokens", "length", "gpus", "peak_tflops", "beam", "share"):
        value = getattr(args, name)
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"--{name.replace('_', '-')} {value:g}: give a number above 0.")
    if args.share is not None and args.share > 1:
        raise InputError(f"--share {args.share:g}: give a share of the peak, 1 at most.")
    if args.gpu and args.peak_tflops:
        raise InputError("--gpu and --peak-tflops both say how fast a processor is: give one.")
    folder = flag_value(args.flags, "--user-dir")
    if folder is None:
        lmfusion.install()
    else:
        use_own_parts(folder)  # before lmfusion is installed: the flags of all integrations are made then
    from lmfusion.planning.machines import DEFAULT, SHARE, Machine, find
    from lmfusion.planning.plan import Asked, make_plan

    peak = args.peak_tflops
    asked = Asked(
        flags=args.flags,
        types=args.types or 0,
        data=args.data,
        tokens=None if args.tokens is None else max(1, int(args.tokens)),
        length=args.length,
        gpus=args.gpus,
        machine=Machine(peak, peak, 0) if peak else find(args.gpu or DEFAULT),
        share=SHARE if args.share is None else args.share,
        beam=args.beam,
    )
    plan = make_plan(asked)
    print(json.dumps(plan.to_dict(), indent=2) if args.json else "\n".join(_lines(plan, asked)))


def _lines(plan: Plan, asked: Asked) -> list[str]:
    """Describe a plan in lines."""
    total = sum(part.parameters for part in plan.parameters)
    trained = sum(part.trained for part in plan.parameters)
    processes = f"{asked.gpus} process{'es' * (asked.gpus != 1)}"
    found = [f"{plan.architecture}, {plan.precision}, {processes}", "", "parameters"]
    for part in plan.parameters:
        how = "" if part.trained == part.parameters else f"  ({part.trained:,} of them trained)"
        found.append(f"  {part.name:<28}{part.parameters:>16,}{how}")
    found += [f"  {'all':<28}{total:>16,}  ({trained:,} trained)", "", "memory of a process"]
    for name in ("weights", "gradients", "optimizer", "activations", "loss", "total"):
        found.append(f"  {name:<28}{getattr(plan.memory, name) / 1e9:>13.2f} GB")
    room = asked.machine.memory * 1e9
    if room and plan.memory.total > 0.9 * room:
        found.append(f"  more than 0.9 of a GPU's {asked.machine.memory:g} GB: fewer --max-tokens, more --update-freq")
    found += ["", "multiply-adds a token"]
    found.append(f"  {'training':<28}{plan.train_macs / 1e6:>13,.1f} million")
    if plan.read_macs:
        found.append(f"  {'reading':<28}{plan.read_macs / 1e6:>13,.1f} million")
    if plan.write_macs is not None:
        found.append(f"  {'writing':<28}{plan.write_macs / 1e6:>13,.1f} million")
    return [*found, "", *_time_lines(plan, asked), "", *_disk_lines(plan, asked)]


def _time_lines(plan: Plan, asked: Asked) -> list[str]:
    epochs = "" if plan.epochs is None else f", {plan.epochs:.2f} epochs"
    peak = asked.machine.single if plan.precision == "fp32" else asked.machine.half
    return [
        f"time, at {asked.share:.0%} of {peak:g} TFLOP/s a processor",
        f"  {plan.updates:,} updates of {plan.tokens_per_update:,} tokens{epochs}",
        f"  {plan.tokens_per_second:,.0f} tokens/s, {plan.hours:,.1f} hours",
    ]


def _disk_lines(plan: Plan, asked: Asked) -> list[str]:
    kept = plan.checkpoints * plan.checkpoint_bytes
    found = ["disk"]
    if plan.data_bytes is not None:
        found.append(f"  {'binarized text':<28}{plan.data_bytes / 1e9:>13.2f} GB")
    size = f"{plan.checkpoints} of {plan.checkpoint_bytes / 1e9:.2f} GB"
    found.append(f"  {'checkpoints':<28}{kept / 1e9:>13.2f} GB  ({size})")
    if plan.epochs is None and "--no-epoch-checkpoints" not in asked.flags:
        found.append("  without those of epochs, of which --tokens or --data would tell the number")
    return found
