"""Semantics verification: runs of drafts tested as one (SJD-SV, arXiv 2609.13245). Approximate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from .errors import DecodingError
from .ratios import PlainRatio, Ratio
from .step import Step
from .verifiers import Verdict, emit_after


@dataclass(frozen=True)
class SemanticsVerification:
    """Drafts are cut into runs of non-decreasing target probability; each run stands or falls by its suffix.

    A run b .. e ends where q(d) falls. Its tested suffix starts at g, the largest index with
        sum of q_j(d_j) over g .. e  >=  proportion * sum over b .. e;
    drafts before g are accepted untested. One uniform number r a run: the accepted end e' is the largest in g
    .. e with
        r < min(1, product of the ratios over g .. e'),
    g - 1 if there is none. A run that is not accepted whole ends the step, with the ratio's residual at e' +
    1.

    proportion: alpha, above 0, up to 1 (paper: 0.8).
    one_number: False draws a fresh number for each shortening (the paper's text has one).
    reject_from_start: True rejects the whole run when not even g passes (as we read the paper, it rejects
        from g on).
    """

    ratio: Ratio = field(default_factory=PlainRatio)
    proportion: float = 0.8
    one_number: bool = True
    reject_from_start: bool = False
    name: ClassVar[str] = "semantics test (SV)"

    def facts(self) -> list[str]:
        options = [] if self.one_number else ["a number for each shortening"]
        options += ["runs rejected whole"] if self.reject_from_start else []
        return [*self.ratio.facts(), f"SV proportion {self.proportion:g}", *options]

    def __post_init__(self) -> None:
        if not 0.0 < self.proportion <= 1.0:
            raise DecodingError(f"proportion must lie above 0 and be at most 1, got {self.proportion}")

    def verify(self, step: Step) -> Verdict:
        if step.width == 0:
            return emit_after(
                step, torch.zeros_like(step.target_laws[:, 0, 0], dtype=torch.int64), self.ratio
            )
        runs = Runs(step, step.target_of_drafts, self.proportion)
        passed = self._passed(step, runs)
        # Accepted: up to the last passing index of the suffix, else up to the suffix (or nothing of the run).
        end = runs.largest(passed, otherwise=runs.begin - 1 if self.reject_from_start else runs.suffix - 1)
        stands = runs.index <= end
        return emit_after(step, step.leading(stands), self.ratio)

    def _passed(self, step: Step, runs: Runs) -> Tensor:
        """Where the product of ratios from the suffix's start passes its number: [L, D] bool, on suffixes
        alone."""
        numerator, denominator = self.ratio.terms(step)
        logs = torch.where(step.testable, numerator.log() - denominator.log(), 0.0)
        coins = step.uniforms.coins[:, : step.width]
        if self.one_number:
            coins = coins.gather(1, runs.begin)
        product = runs.sums_from(logs, runs.suffix).exp()
        # < rather than the paper's <=: a coin may be 0 exactly, and an excluded draft must never pass.
        return (coins.to(product.dtype) < product.clamp(max=1.0)) & (runs.index >= runs.suffix)


class Runs:
    """Runs of non-decreasing probability: for each draft, where its run begins and ends and where the suffix
    starts."""

    def __init__(
        self,
        step: Step,
        probability: Tensor,  # q_j(d_j) [L, D]
        proportion: float,
    ) -> None:
        lanes, width = probability.shape
        self.index = torch.arange(width, device=probability.device).expand(lanes, width)
        real = step.testable
        starts = torch.ones_like(real)
        starts[:, 1:] = (probability[:, 1:] < probability[:, :-1]) | ~real[:, 1:] | ~real[:, :-1]
        self.run = starts.cumsum(-1) - 1  # [L, D] number of the run
        self.begin = torch.where(starts, self.index, 0).cummax(-1).values
        self.end = self.largest(torch.ones_like(real), otherwise=self.index)
        mass = probability.double()
        whole = self.sums_from(mass, self.begin).gather(1, self.end)
        before = self.sums_from(mass, self.begin) - mass  # mass of the run before each draft
        self.suffix = self.largest(whole - before >= proportion * whole, otherwise=self.begin)

    def sums_from(self, values: Tensor, start: Tensor) -> Tensor:
        """Sum of `values` from `start` ([L, D], in the same run) to each draft, both included: [L, D]
        float64.

        An infinite value (a draft that q excludes) spoils its own run's sums from it on, not those of later
        runs.
        """
        finite = torch.where(values.isinf(), 0.0, values.double())
        total = torch.cat([finite.new_zeros(len(finite), 1), finite.cumsum(-1)], 1)
        excluded = torch.where(values == -torch.inf, self.index, -1).cummax(-1).values
        sums = total.gather(1, self.index + 1) - total.gather(1, start)
        return torch.where(excluded >= start, -torch.inf, sums)

    def largest(self, chosen: Tensor, otherwise: Tensor) -> Tensor:
        """The largest chosen index of each draft's run, `otherwise` where its run has none: [L, D] int64."""
        best = torch.full_like(self.index, -1)
        best = best.scatter_reduce(1, self.run, torch.where(chosen, self.index, -1), "amax")
        found = best.gather(1, self.run)
        return torch.where(found >= 0, found, otherwise)
