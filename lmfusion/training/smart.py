"""SMART: smoothness under small changes of the embeddings, and steps that stay near former weights (Jiang et al. 2020).

The paper is "SMART: Robust and Efficient Fine-Tuning for Pre-trained Natural Language Models through Principled
Regularized Optimization". ``F(θ) = L(θ) + λ R(θ) + μ D(θ, θ')`` with ``R``, the mean over examples of the greatest
distance of outputs within a ball around their embeddings, and ``D``, the distance from the outputs of averaged weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.consumers.heads import IGNORED, scores
from lmfusion.errors import InputError
from lmfusion.text.labelled import BINARY, SCORE

_NO_DIVISION_BY_ZERO = 1e-30
INF, TWO = NORMS = ("inf", "2")


@dataclass(frozen=True)
class Ball:
    """The ball around the embeddings, and the ascent inside it.

    Attributes:
        epsilon: its radius, for the embeddings of one example together.
        steps: of the ascent.
        step_size: length of a step, in the norm.
        noise: standard deviation of the start: at the centre the distance of outputs has no gradient.
        norm: ``inf``, the largest number, or ``2``, the root of the sum of squares.
    """

    epsilon: float = 1e-5
    steps: int = 1
    step_size: float = 1e-3
    noise: float = 1e-5
    norm: str = INF

    def size(self, changes: Sequence[Tensor]) -> Tensor:
        """Return the norm of what changes of each example, tensors of B x T x C together: B x 1 x 1."""
        flat = torch.cat([change.flatten(1) for change in changes], dim=1)
        norm = flat.abs().amax(1) if self.norm == INF else flat.norm(dim=1)
        return norm.view(-1, 1, 1)

    def check(self, lost: float) -> None:
        """Refuse settings with which the search would find a distance of 0, as changes lost in half precision do.

        Args:
            lost: what is added to embeddings and rounded away; 0 in single precision.

        Raises:
            InputError: naming the flags that are too small.
        """
        if self.noise == 0:
            raise InputError(
                "--smart-noise 0: where the search would start, the distance of outputs has no gradient, so that SMART "
                "would do nothing: give more (1e-5; 0.01 in half precision)."
            )
        given = {"noise": self.noise, "epsilon": self.epsilon, "step-size": self.step_size}
        small = [f"--smart-{name} {value:g}" for name, value in given.items() if value < lost]
        if small:
            raise InputError(
                f"{', '.join(small)}: half precision rounds changes below {lost:.1g} of these embeddings away, so that "
                f"SMART would do nothing: give more (0.01), or train without --fp16, --bf16, --amp and --cpu-bf16."
            )

    def into(self, changes: Sequence[Tensor]) -> list[Tensor]:
        """Project changes, tensors of B x T x C that belong to the same B examples, onto the ball."""
        if self.norm == INF:
            return [change.clamp(-self.epsilon, self.epsilon) for change in changes]
        scale = (self.epsilon / self.size(changes).clamp(min=_NO_DIVISION_BY_ZERO)).clamp(max=1.0)
        return [change * scale for change in changes]


class Changes:
    """Adds a change to what embeddings give, in the order of their calls within a pass.

    Args:
        embeddings: modules, ids (B x T) -> vectors (B x T x C), each with a function that tells where such ids are
            padding (B x T), where nothing is changed.

    Attributes:
        masks: of the calls that were seen, B x T x C, 1 at words and 0 at padding; float32, as changes are.
        lost: of these calls in half precision, the change that is rounded away at a number of their usual size.
    """

    def __init__(self, *embeddings: tuple[nn.Module, Callable[[Tensor], Tensor]]) -> None:
        self.embeddings = embeddings
        self.masks: list[Tensor] = []
        self.lost: list[Tensor] = []

    @contextmanager
    def seen(self) -> Iterator[None]:
        """Note the calls of a pass: where they have words."""
        self.masks, self.lost = [], []
        padding = dict(self.embeddings)

        def note(embedding: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> None:
            words = (~padding[embedding](inputs[0])).unsqueeze(-1)
            # Half precision has no room for squares of changes, nor for what keeps a division by them from being 0 / 0.
            precise = torch.promote_types(output.dtype, torch.float32)
            self.masks.append(words.to(precise).expand_as(output))
            if (read := _read_as(output)) != precise:
                self.lost.append(output.detach().to(precise).pow(2).mean().sqrt() * torch.finfo(read).eps / 2)

        with self._hooked(note):
            yield

    @contextmanager
    def added(self, changes: Sequence[Tensor]) -> Iterator[None]:
        """Add a change (B x T x C) to each call of a pass."""
        each = iter(changes)

        def add(_: nn.Module, __: Sequence[Tensor], output: Tensor) -> Tensor:
            return output + next(each).to(output.dtype)

        with self._hooked(add):
            yield

    @contextmanager
    def _hooked(self, hook: Callable[..., Any]) -> Iterator[None]:
        handles = [embedding.register_forward_hook(hook) for embedding, _ in self.embeddings]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _read_as(output: Tensor) -> torch.dtype:
    """Return the type in which layers read what embeddings give: its own, or that in which autocast takes products."""
    place = output.device.type
    return torch.get_autocast_dtype(place) if torch.is_autocast_enabled(place) else output.dtype


def distance(kind: str, ours: Tensor, theirs: Tensor, words: Tensor | None = None) -> Tensor:
    """Return the mean distance ``l_s`` of two outputs over examples, a scalar.

    It is the squared difference of scores; the symmetric Kullback-Leibler divergence ``KL(p|q) + KL(q|p)`` of classes,
    of yes and no, and of tags.

    Args:
        kind: of the head.
        ours: logits: B x K, B, or B x T x K.
        theirs: logits of the same shape.
        words: B x T, of tags: True at those that count.
    """
    if kind == SCORE:
        return F.mse_loss(scores(ours), scores(theirs))
    if kind == BINARY:  # of logits a and b: (σ(a) - σ(b)) (a - b)
        ours, theirs = ours.float(), theirs.float()
        return ((ours.sigmoid() - theirs.sigmoid()) * (ours - theirs)).mean()
    one, other = ours.float().log_softmax(-1), theirs.float().log_softmax(-1)
    each = ((one.exp() - other.exp()) * (one - other)).sum(-1)
    return each[words].mean() if words is not None else each.mean()


class SameDropout:
    """Lets every pass of a step draw the same dropout, so that outputs differ by what is changed alone.

    Args:
        device: of the model.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device if device.type == "cuda" else None
        self._cpu_state = torch.get_rng_state()
        self._cuda_state = torch.cuda.get_rng_state(device) if self._cuda else None

    def again(self) -> None:
        """Draw from here on what was drawn since this object was made."""
        torch.set_rng_state(self._cpu_state)
        if self._cuda is not None and self._cuda_state is not None:
            torch.cuda.set_rng_state(self._cuda_state, self._cuda)


def most_distant(
    run: Callable[[], Tensor],
    clean: Tensor,
    changes: Changes,
    apart: Callable[[Tensor, Tensor], Tensor],
    ball: Ball,
    generator: torch.Generator,
) -> Tensor:
    """Return the distance of outputs at about the most distant embeddings of the ball, ``R``, a scalar with gradients.

    Args:
        run: runs the model; returns logits.
        clean: its logits at the embeddings themselves.
        changes: of the model's embedding, which has seen that pass.
        apart: distance of two logits; see :func:`distance`.
        ball: around the embeddings.
        generator: of the start, on the CPU.

    Raises:
        InputError: if a language model passes no gradients on to its embeddings.
    """
    masks = changes.masks
    current = ball.into([torch.randn(mask.shape, generator=generator).to(mask) * ball.noise * mask for mask in masks])
    for _ in range(ball.steps):
        tried = [change.detach().requires_grad_() for change in current]
        with torch.enable_grad(), changes.added(tried):
            found = apart(run(), clean.detach())
        gradients = _gradients(found, tried)
        step = ball.step_size / ball.size(gradients).clamp(min=_NO_DIVISION_BY_ZERO)
        current = ball.into([change.detach() + step * g * mask for g, change, mask in zip(gradients, tried, masks)])
    with changes.added(current):
        return apart(run(), clean)


def _gradients(found: Tensor, tried: list[Tensor]) -> list[Tensor]:
    given = torch.autograd.grad(found, tried, allow_unused=True) if found.requires_grad else []
    gradients = [gradient for gradient in given if gradient is not None]
    if not tried or len(gradients) < len(tried):
        raise InputError(
            "--smart-weight changes what a language model reads, and no gradient comes back from there: leave out "
            "--src-lm-freeze-updates (--tgt-…), or --smart-weight."
        )
    return gradients


def tagged_words(target: Tensor | None) -> Tensor | None:
    """Return where there are tags, B x T, of targets that have that form; else None."""
    return target.ne(IGNORED) if target is not None and target.dim() == 2 else None
