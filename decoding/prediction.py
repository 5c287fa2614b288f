"""Verification prediction: redraft laws leaned towards tokens whose probability keeps growing (SJD-VP, arXiv
2603.27115)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .drafts import History
from .errors import DecodingError
from .step import Step


@dataclass(frozen=True)
class VerificationPrediction:
    """The redraft law q' of SJD-VP, which is the *declared* law of the drafts drawn from it.

    With q_t the target law of a position at this step and q_{t-1}, …, q_{t-N} those of the steps before:
        reference  r(x) = sum of w_i q_{t-i}(x) over i = 1 .. N, with w_i proportional to decay^(i-1)
        score      S(x) = log q_t(x) - log r(x), at most log(cap)
        mask       M(x) = 1 where q_t(x) > q_{t-1}(x) > … > q_{t-N}(x) > 0
        law        q'(x) proportional to q_t(x) exp(M(x) S(x)), on the support of q_t
    Positions with fewer than N earlier laws keep q_t. The paper fixes N = 3; its decay is not published (0.5
    here), nor a cap (10 here: a token that has just entered the top-k would otherwise take all). Tokens that
    are committed without a draft are drawn from q_t, never from q'.
    """

    growth: int = 3
    decay: float = 0.5
    cap: float = 10.0
    name: ClassVar[str] = "verification prediction"

    def facts(self) -> list[str]:
        return [f"VP growth {self.growth}, decay {self.decay:g}, cap {self.cap:g}"]

    def __post_init__(self) -> None:
        if not 1 <= self.growth <= 8:
            raise DecodingError(f"growth must lie in 1 to 8 steps, got {self.growth}")
        if not 0.0 < self.decay <= 1.0:
            raise DecodingError(f"decay must lie above 0 and be at most 1, got {self.decay}")
        if not self.cap >= 1.0:
            raise DecodingError(f"cap must be at least 1, got {self.cap}")

    def laws(self, step: Step) -> tuple[Tensor, History]:
        target = step.target_laws
        lanes, rows, vocabulary = target.shape
        past = target.new_zeros(lanes, rows, self.growth, vocabulary)  # newest first
        age = torch.zeros(lanes, rows, dtype=torch.int64, device=target.device)
        if step.drafts.history is not None:
            past[:, : step.width] = step.drafts.history.laws
            age[:, : step.width] = step.drafts.history.age
        fused = self._fuse(target, past)
        laws = torch.where((age >= self.growth)[..., None], fused, target)
        remembered = torch.cat([target[:, :, None], past[:, :, :-1]], 2)
        return laws, History(remembered, (age + 1).clamp(max=self.growth))

    def _fuse(
        self,
        target: Tensor,  # q_t [L, R, V]
        past: Tensor,  # [L, R, N, V]
    ) -> Tensor:
        weights = self.decay ** torch.arange(self.growth, device=target.device, dtype=target.dtype)
        reference = torch.einsum("n,lrnv->lrv", weights / weights.sum(), past)
        newer = torch.cat([target[:, :, None], past[:, :, :-1]], 2)
        growing = (newer > past).all(2) & (past[:, :, -1] > 0)
        gain = torch.where(growing, (target / reference).clamp(max=self.cap), 1.0)
        leaned = target * gain
        return leaned / leaned.sum(-1, keepdim=True)
