"""Block verification: the whole window tested at once, exactly (Sun et al., arXiv 2403.10444)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .draws import inverse_cdf
from .step import Step
from .verifiers import Verdict


@dataclass(frozen=True)
class BlockTest:
    """Accepts at least as many drafts as any exact test of parts of the window, in expectation.

    For drafts d_1 .. d_k (position i follows d_1 .. d_{i-1}; p, q their laws), with b_0 = 1:
        b_i = min(1, b_{i-1} q_i(d_i) / p_i(d_i))
        R_i = sum over v of max(b_i q_{i+1}(v) - p_{i+1}(v), 0)
        h_i = R_i / (R_i + 1 - b_i) for i < k, and h_k = b_k
        accepted = the largest i with coin_i < h_i, 0 if there is none
        emitted ~ max(b_i q_{i+1} - p_{i+1}, 0) there, q_{k+1} after the last draft
    In logarithms b_i = exp(S_i - max of S_0 .. S_i) with S the running sum of log ratios, so no loop is
    needed. Fresh draws only: coins to the right decide here, so a redraft that depends on them would be
    biased. Known tokens have certain laws p = q: ratio 1, and no stop right before them.
    """

    name: ClassVar[str] = "block test"

    def facts(self) -> list[str]:
        return []

    def verify(self, step: Step) -> Verdict:
        width, lanes = step.width, step.target_laws.shape[0]
        b = self.survival(step)  # [L, D + 1]
        excess = (b[:, :-1, None] * step.target_laws[:, :width] - step.drafts.laws).clamp_(min=0.0)
        mass = excess.sum(-1)  # R_0 .. R_{D-1}
        stop = torch.where(mass + 1.0 - b[:, :-1] > 0.0, mass / (mass + 1.0 - b[:, :-1]), 1.0)
        stop = torch.where(step.known, 0.0, stop)
        last = (step.testable | step.known).sum(-1)  # k of each lane
        index = torch.arange(width + 1, device=b.device)
        stop = torch.cat([stop, stop.new_zeros(lanes, 1)], 1)
        stop = torch.where(index == last[:, None], b, stop)
        coins = torch.cat([stop.new_zeros(lanes, 1), step.uniforms.coins[:, :width].to(stop.dtype)], 1)
        # coin < h rather than <=: the coin may be 0 exactly, and h 0 must never pass.
        passes = ((coins < stop) | (index == 0)) & (index <= last[:, None])
        accepted = (passes * index).amax(-1)
        return Verdict(accepted, self._emit(step, accepted, last, excess))

    @staticmethod
    def survival(step: Step) -> Tensor:
        """b_0 .. b_D of each lane: [L, D + 1]."""
        ratio = step.target_of_drafts.log() - step.declared_of_drafts.log()
        ratio = torch.where(step.testable, ratio, 0.0)
        total = torch.cat([ratio.new_zeros(len(ratio), 1), ratio.cumsum(-1)], 1)
        return (total - total.cummax(-1).values).exp()

    @staticmethod
    def _emit(step: Step, accepted: Tensor, last: Tensor, excess: Tensor) -> Tensor:
        law = step.law_after(accepted)
        if step.width:
            lane = torch.arange(len(accepted), device=law.device)
            left = excess[lane, accepted.clamp(max=step.width - 1)]
            stopped = (accepted < last)[:, None] & (left.sum(-1, keepdim=True) > 0.0)
            law = torch.where(stopped, left, law)
        return inverse_cdf(law, step.uniforms.emission)
