"""How long ROUGE takes on a test set of the size of CNN-DailyMail's: 11,490 summaries of 60 tokens.

    lmfusion bench rouge_speed [--summaries N] [--tokens N] [--json FILE]

The text is made up: words drawn by Zipf's law from a vocabulary, four sentences per summary, and half of each
hypothesis copied from its reference, so that matches are as frequent as in real summaries or more so.
"""

from __future__ import annotations

import random
from itertools import accumulate

from options import flags, parse
from results import Table, report
from timing import Spread, seconds

from lmfusion.scoring import rouge

LIMIT_SECONDS = 60
VOCABULARY, SENTENCES = 30_000, 4


def made_up_summaries(count: int, tokens: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references, one sentence per line; the same in every run."""
    generator = random.Random(1)
    letters = "etaoinshrdlucmfwypvbg"
    words = ["".join(generator.choices(letters, k=generator.randint(2, 10))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
    references = [generator.choices(words, cum_weights=weights, k=tokens) for _ in range(count)]
    hypotheses = []
    for reference in references:
        start = generator.randint(0, tokens // 2)
        others = generator.choices(words, cum_weights=weights, k=tokens - tokens // 2)
        hypotheses.append(others[:start] + reference[start : start + tokens // 2] + others[start:])
    return [_text(summary) for summary in hypotheses], [_text(summary) for summary in references]


def _text(words: list[str]) -> str:
    length = max(1, len(words) // SENTENCES)
    return "\n".join(" ".join(words[start : start + length]) for start in range(0, len(words), length))


def main(arguments: list[str] | None = None) -> None:
    """Prints the seconds, and their ratio to the limit."""
    parser = flags(__doc__, rounds=1, sized=False)
    parser.add_argument("--summaries", type=int, default=11_490)
    parser.add_argument("--tokens", type=int, default=60)
    args = parse(parser, arguments)
    hypotheses, references = made_up_summaries(args.summaries, args.tokens)
    score = rouge.score(hypotheses[:1], references[:1])  # and load what it needs
    taken = Spread([seconds(lambda: rouge.score(hypotheses, references)) for _ in range(args.rounds)])
    columns = ["summaries", "seconds", f"of the {LIMIT_SECONDS} s allowed"]
    table = Table(f"ROUGE of summaries of {args.tokens} tokens", columns)
    table.rows.append([f"{args.summaries:,}", f"{taken.median:.1f}", f"{taken.median / LIMIT_SECONDS:.2f}"])
    report("rouge_speed", args, [table], seconds=taken, limit=LIMIT_SECONDS, signature=score.signature)


if __name__ == "__main__":
    main()
