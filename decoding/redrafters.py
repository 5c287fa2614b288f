"""Redrafters: new drafts for the positions whose old drafts were rejected, or built on rejected ones.

A redrafter is a law and a draw. The draw may depend on the old draft or on shared noise; the declared law is
the law that the draw has given everything to the left, so that the exact tests stay exact (column causality,
docs/promises.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from .drafts import Drafts, History
from .draws import inverse_cdf, keeps, noisy_argmax, residual
from .step import Step


class RedraftLaw(Protocol):
    """Laws [L, D + 1, V] to draw the new drafts from, and what later steps need to know of this one."""

    name: str

    def facts(self) -> list[str]:
        """Its settings in words, for reports."""

    def laws(self, step: Step) -> tuple[Tensor, History | None]: ...


class Draw(Protocol):
    """New tokens [L, D + 1] int64 of the given laws.

    honest: a token has, given everything to the left, the law it was drawn from; what every ratio test rests
        on.
    """

    name: str
    honest: bool

    def draw(self, step: Step, laws: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Redrafter:
    """Proposes drafts for all rows of a step; the loop uses the rows behind the committed token."""

    law: RedraftLaw
    draw: Draw

    def redraft(self, step: Step) -> Drafts:
        laws, history = self.law.laws(step)
        return Drafts(self.draw.draw(step, laws), laws, history)


@dataclass(frozen=True)
class TargetLaw:
    """SJD: the target law of this step."""

    name: ClassVar[str] = "target"

    def facts(self) -> list[str]:
        return []

    def laws(self, step: Step) -> tuple[Tensor, None]:
        return step.target_laws, None


@dataclass(frozen=True)
class FreshDraw:
    """SJD: a draw that owes nothing to the old draft."""

    name: ClassVar[str] = "fresh"
    honest: ClassVar[bool] = True

    def draw(self, step: Step, laws: Tensor) -> Tensor:
        return inverse_cdf(laws, step.uniforms.redraws[:, : laws.shape[1]])


@dataclass(frozen=True)
class MaximalCoupling:
    """Keep the old draft as often as its new law allows, else draw from what the old law lacked.

    Coupled speculative decoding (arXiv 2510.24211), also the adaptive continuation of SJD-PAC. The result has
    the new law, which is declared for kept and for redrawn tokens alike; a kept draft with its *old* law
    would bias the next test. The coins are the test's own: a position's coin either tests or couples in a
    step, never both.
    """

    name: ClassVar[str] = "maximal coupling"
    honest: ClassVar[bool] = True

    def draw(self, step: Step, laws: Tensor) -> Tensor:
        width, old = step.width, step.drafts
        kept = step.testable & keeps(old.tokens, laws[:, :width], old.laws, step.uniforms.coins[:, :width])
        lacked = torch.where(step.testable[..., None], residual(laws[:, :width], old.laws), laws[:, :width])
        source = torch.cat([lacked, laws[:, width:]], 1)
        drawn = inverse_cdf(source, step.uniforms.redraws[:, : width + 1])
        drawn[:, :width] = torch.where(kept, old.tokens, drawn[:, :width])
        return drawn


@dataclass(frozen=True)
class SharedNoiseDraw:
    """argmax(log law + noise of the cell): the same noise at every try, so that drafts settle as their laws
    do."""

    name: ClassVar[str] = "shared noise"
    honest: ClassVar[bool] = True

    def draw(self, step: Step, laws: Tensor) -> Tensor:
        return step.shared_noise_tokens if laws is step.target_laws else noisy_argmax(laws, step.noise)


@dataclass(frozen=True)
class GreedyDraw:
    """The likeliest token, for greedy matching. Its declared law is nobody's: no ratio test may follow."""

    name: ClassVar[str] = "likeliest"
    honest: ClassVar[bool] = False

    def draw(self, step: Step, laws: Tensor) -> Tensor:
        return laws.argmax(-1)
