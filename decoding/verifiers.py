"""Verifiers: how many drafts stand, and which token is committed after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from .draws import inverse_cdf
from .ratios import PlainRatio, Ratio
from .step import Step


class Verdict(NamedTuple):
    """`accepted` [L] int64 drafts stand; `emitted` [L] int64 is committed right after them; `node` [L] int64
    is where they end in a tree of drafts."""

    accepted: Tensor
    emitted: Tensor
    node: Tensor | None = None


class Verifier(Protocol):
    """Decides a step. `name` is for messages."""

    name: str

    def facts(self) -> list[str]:
        """Its settings in words, for reports."""

    def verify(self, step: Step) -> Verdict: ...


@dataclass(frozen=True)
class SharedNoiseMatch:
    """Keep drafts that equal step-by-step decoding's own draw; commit that draw at the first difference.

    Every committed token is argmax(log q + noise of its cell) with q computed on the committed prefix, so the
    picture is AR's for any drafts at all. With no drafts this *is* AR.
    """

    name: ClassVar[str] = "shared-noise match"

    def facts(self) -> list[str]:
        return []

    def verify(self, step: Step) -> Verdict:
        return _first_difference(step, step.shared_noise_tokens)


@dataclass(frozen=True)
class GreedyMatch:
    """Keep drafts that are the likeliest token; commit the likeliest at the first difference (temperature
    0)."""

    name: ClassVar[str] = "greedy match"

    def facts(self) -> list[str]:
        return []

    def verify(self, step: Step) -> Verdict:
        return _first_difference(step, step.target_laws.argmax(-1))


def _first_difference(
    step: Step,
    wanted: Tensor,  # [L, D + 1] int64
) -> Verdict:
    accepted = step.leading(step.drafts.tokens == wanted[:, :-1])
    return Verdict(accepted, wanted.gather(1, accepted[:, None]).squeeze(1))


@dataclass(frozen=True)
class TokenTest:
    """SJD's test (Teng et al. 2025): each draft by its own coin. With the plain ratio, speculative
    sampling's: exact.

    Keep draft x with probability min(1, n / d) of the ratio; at the first rejection commit a draw from what
    the ratio says follows, after the last draft a draw from q. Committed tokens follow q exactly when the
    ratio is plain and each draft's law is the one it was drawn from.

    Example, one lane, drafts (5, 7), q/p = (2.0, 0.25), coins (0.9, 0.6): 0.9 < 2.0 keeps 5, 0.6 >= 0.25
    rejects 7: accepted 1, emitted ~ max(q_1 - p_1, 0).
    """

    ratio: Ratio = field(default_factory=PlainRatio)
    name: ClassVar[str] = "token test"

    def facts(self) -> list[str]:
        return self.ratio.facts()

    def verify(self, step: Step) -> Verdict:
        numerator, denominator = self.ratio.terms(step)
        coins = step.uniforms.coins[:, : step.width].to(numerator.dtype)
        return emit_after(step, step.leading(coins * denominator < numerator), self.ratio)


def emit_after(
    step: Step,
    accepted: Tensor,  # [L] int64
    ratio: Ratio,
) -> Verdict:
    """Commit after `accepted` drafts: what the ratio says at a rejected draft, a draw from q where there is
    none."""
    law, width = step.law_after(accepted), step.width
    if width:
        lane = torch.arange(len(accepted), device=law.device)
        at = accepted.clamp(max=width - 1)
        rejected = (accepted < width) & step.testable[lane, at]
        after = ratio.after_rejection(step, law, step.drafts.laws[lane, at], step.drafts.tokens[lane, at])
        law = torch.where(rejected[:, None], after, law)
    return Verdict(accepted, inverse_cdf(law, step.uniforms.emission))
