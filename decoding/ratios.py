"""Ratios: what a test weighs against what for a draft, and what is drawn when it fails.

A test keeps draft x with probability min(1, n / d). The plain ratio q(x) / p(x) is the only exact one; the
others let a draft borrow the probability of tokens that look like it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from .draws import residual
from .errors import DecodingError
from .step import Step


class Terms(NamedTuple):
    """Numerator and denominator of each draft's ratio, [L, D] both. The denominator is above 0 for real
    drafts."""

    numerator: Tensor
    denominator: Tensor


class Ratio(Protocol):
    """What a draft's test weighs."""

    def facts(self) -> list[str]:
        """Its settings in words, for reports."""

    def terms(self, step: Step) -> Terms: ...

    def after_rejection(
        self,
        step: Step,
        target_law: Tensor,  # q [L, V] where each lane's run of accepted drafts ended
        draft_law: Tensor,  # p [L, V]
        draft: Tensor,  # [L] int64, the rejected draft
    ) -> Tensor:
        """Law [L, V], not normalised, of the token that takes a rejected draft's place."""


@dataclass(frozen=True)
class PlainRatio:
    """q(x) / p(x) (Leviathan et al. 2023; Chen et al. 2023)."""

    def facts(self) -> list[str]:
        return []

    def terms(self, step: Step) -> Terms:
        return Terms(step.target_of_drafts, step.declared_of_drafts)

    def after_rejection(self, step: Step, target_law: Tensor, draft_law: Tensor, draft: Tensor) -> Tensor:
        return residual(target_law, draft_law)


@dataclass(frozen=True)
class GroupedRatio:
    """GSD (Grouped Speculative Decoding, ICCV 2025): the draft's cluster, q(C) / p(C). The draft itself is
    kept.

    C holds the draft and tokens near it in three ways: by rank under q (half the `group` above it, the other
    half, the draft included, from it down), by |q(z) - q(x)| < `probability_gap`, by squared distance of
    codebook rows < `embedding_gap`. The released code uses 14, 0.15 and 0.5, and the language model's input
    embeddings for the distance; here it is the codebook. Equal probabilities count as ranked below the draft.
    """

    group: int = 14
    probability_gap: float = 0.15
    embedding_gap: float = 0.5

    def facts(self) -> list[str]:
        return [f"group {self.group}, gaps {self.probability_gap:g} and {self.embedding_gap:g}"]

    def __post_init__(self) -> None:
        if not 2 <= self.group <= 200:
            raise DecodingError(f"group must lie in 2 to 200 tokens, got {self.group}")
        if not (self.probability_gap > 0.0 and self.embedding_gap > 0.0):
            gaps = f"{self.probability_gap} and {self.embedding_gap}"
            raise DecodingError(f"the gaps must be above 0, else no draft is in its own group; got {gaps}")

    def terms(self, step: Step) -> Terms:
        laws, drafts = step.target_laws[:, : step.width], step.drafts
        mine = step.target_of_drafts[..., None]
        above = torch.where(laws > mine, laws, torch.inf)
        below = torch.where(laws <= mine, laws, -torch.inf)
        below = below.scatter(-1, drafts.tokens[..., None], torch.inf)  # the draft leads its own side
        half = min(self.group // 2, laws.shape[-1])
        above = above.topk(half, dim=-1, largest=False)
        below = below.topk(half, dim=-1)
        members = torch.cat([above.indices, below.indices], -1)  # [L, D, G]
        exists = torch.cat([above.values < torch.inf, below.values > -torch.inf], -1)
        q, p = laws.gather(-1, members), drafts.laws.gather(-1, members)
        rows = step.codebook.rows
        distance = (rows[members] - rows[drafts.tokens][..., None, :]).square().sum(-1)
        near = exists & ((q - mine).abs() < self.probability_gap) & (distance < self.embedding_gap)
        return Terms((q * near).sum(-1), (p * near).sum(-1))

    def after_rejection(self, step: Step, target_law: Tensor, draft_law: Tensor, draft: Tensor) -> Tensor:
        return residual(target_law, draft_law)


@dataclass(frozen=True)
class NeighbourhoodRatio:
    """LANTERN's relaxation put into SJD: (q(x) + q(A)) / p(x), A the draft's nearest codes.

    A is the longest prefix of the draft's `neighbours` nearest codes (codebook distance, itself excluded)
    whose mass stays within `bound`; a bound above 1 is LANTERN++'s factor: mass at most (bound - 1) q(x).
    LANTERN uses 1000 and 0.1. After a rejection the draft and A are taken out of q. The released code takes
    out all neighbours: where a model is certain, its own token is among them, and what is left to draw from
    is what the model rules out (seen on the first weights of the built-in model: 9.4 % of tokens below 1e-4
    under q, against 0.1 % with A alone).
    """

    neighbours: int = 1000
    bound: float = 0.1

    def facts(self) -> list[str]:
        return [f"{self.neighbours} neighbours, bound {self.bound:g}"]

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise DecodingError(f"neighbours must be at least 1, got {self.neighbours}")
        if not self.bound > 0.0:
            raise DecodingError(f"bound must be above 0, got {self.bound}")

    def _lent(
        self,
        near: Tensor,  # [..., k] neighbours of each draft, nearest first
        law: Tensor,  # q [..., V]
        own: Tensor,  # q of each draft [...]
    ) -> Tensor:
        """Mass of each neighbour that belongs to A, 0 for the others: [..., k]."""
        masses = law.gather(-1, near)
        allowed = (self.bound - 1.0) * own if self.bound > 1.0 else torch.full_like(own, self.bound)
        return masses * (masses.cumsum(-1) <= allowed[..., None])  # a prefix: masses are not negative

    def terms(self, step: Step) -> Terms:
        near = step.codebook.nearest(self.neighbours)[step.drafts.tokens]  # [L, D, k]
        own = step.target_of_drafts
        lent = self._lent(near, step.target_laws[:, : step.width], own).sum(-1)
        return Terms(own + lent, step.declared_of_drafts)

    def after_rejection(self, step: Step, target_law: Tensor, draft_law: Tensor, draft: Tensor) -> Tensor:
        near = step.codebook.nearest(self.neighbours)[draft]  # [L, k]
        own = target_law.gather(-1, draft[:, None]).squeeze(-1)
        lent = self._lent(near, target_law, own)
        without = target_law.scatter_add(-1, near, -lent).scatter(-1, draft[:, None], 0.0).clamp(min=0.0)
        emptied = (lent.sum(-1) > 0.0) & (without.sum(-1) > 0.0)
        return residual(torch.where(emptied[:, None], without, target_law), draft_law)
