"""Redrafters: new drafts for the positions whose old drafts were rejected, or built on rejected ones.

A redrafter is a law and a draw. The draw below may depend on the old draft or on shared noise; the declared
law is the law that the draw has given everything to the left, so that the exact test stays exact (column
causality).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from .drafts import Drafts
from .draws import inverse_cdf, keeps, residual
from .step import Step


class Redrafter(Protocol):
    """Proposes drafts [L, D + 1] for all rows of a step; the loop uses the rows behind the committed token.

    `law` and `draw` key the table of promises.
    """

    law: str
    draw: str

    def redraft(self, step: Step) -> Drafts: ...


@dataclass(frozen=True)
class FreshDraw:
    """SJD: a new draw from the target law of this step."""

    law: str = "target"
    draw: str = "fresh"

    def redraft(self, step: Step) -> Drafts:
        laws = step.target_laws
        return Drafts(inverse_cdf(laws, step.uniforms.redraws[:, : laws.shape[1]]), laws)


@dataclass(frozen=True)
class MaximalCoupling:
    """Keep the old draft as often as its new law allows, else draw from what the old law lacked.

    Coupled speculative decoding (arXiv 2510.24211), also the adaptive continuation of SJD-PAC. The result has
    law q, so q is declared for kept and for redrawn tokens alike; a kept draft with its *old* law would bias
    the next test. The coins are the test's own: a position's coin either tests or couples in a step, never
    both.
    """

    law: str = "target"
    draw: str = "maximal coupling"

    def redraft(self, step: Step) -> Drafts:
        laws, width = step.target_laws, step.width
        old = step.drafts
        kept = step.testable & keeps(old.tokens, laws[:, :width], old.laws, step.uniforms.coins[:, :width])
        excess = torch.where(step.testable[..., None], residual(laws[:, :width], old.laws), laws[:, :width])
        source = torch.cat([excess, laws[:, width:]], 1)
        drawn = inverse_cdf(source, step.uniforms.redraws[:, : width + 1])
        drawn[:, :width] = torch.where(kept, old.tokens, drawn[:, :width])
        return Drafts(drawn, laws)


@dataclass(frozen=True)
class SharedNoiseDraw:
    """argmax(log q + noise of the cell): the same noise at every try, so that drafts settle as their laws
    do."""

    law: str = "target"
    draw: str = "shared noise"

    def redraft(self, step: Step) -> Drafts:
        return Drafts(step.shared_noise_tokens, step.target_laws)


@dataclass(frozen=True)
class GreedyDraw:
    """The likeliest token, for greedy matching. Its declared law is nobody's: no ratio test may follow."""

    law: str = "target"
    draw: str = "likeliest"

    def redraft(self, step: Step) -> Drafts:
        return Drafts(step.target_laws.argmax(-1), step.target_laws)
