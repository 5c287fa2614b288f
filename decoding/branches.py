"""Candidates of the columns of a tree, and what one step knows of its branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from .device import upload
from .drafts import Drafts
from .draws import inverse_cdf
from .tree import Tree


@dataclass(frozen=True)
class Candidates:
    """K tokens for each of the first columns of each lane. The first is the draft itself.

    The declared law of a candidate is that of its column's draft without the candidates before it,
    renormalised. Where the law's support is used up, the rest of the column are no candidates.
    """

    tokens: Tensor  # [L, d, K] int64
    exist: Tensor  # [L, d, K] bool


def without_replacement(
    drafts: Drafts,  # [L, d]
    uniforms: Tensor,  # [L, d, K - 1] on [0, 1)
) -> Candidates:
    """Siblings drawn one after the other from the declared law without those before them.

    Not from what the law gained since the last step, max(q - p, 0), as released code has it: given the first
    candidate, that is not the declared law, and tests against it are biased.
    """
    left, tokens, exist = drafts.laws, [drafts.tokens], [torch.ones_like(drafts.tokens, dtype=torch.bool)]
    for number in uniforms.unbind(-1):
        left = left.scatter(-1, tokens[-1][..., None], 0.0)
        exist.append(left.sum(-1) > 0.0)
        tokens.append(torch.where(exist[-1], inverse_cdf(left, number).clamp(max=left.shape[-1] - 1), 0))
    return Candidates(torch.stack(tokens, -1), torch.stack(exist, -1))


def runners_up(
    drafts: Drafts,  # [L, d]
    noise: Tensor,  # [L, d, V] exponential variates of the columns' cells
    siblings: int,
) -> Candidates:
    """Siblings as the next in the race that shared noise decides, the draft left out.

    Without a token a race is a race of the others by their own law: again draws without replacement, whether
    the draft won the race or came from elsewhere.
    """
    race = (drafts.laws / noise).scatter(-1, drafts.tokens[..., None], 0.0)
    count = min(siblings - 1, race.shape[-1])
    best = race.topk(count, dim=-1)
    tokens = torch.cat([drafts.tokens[..., None], best.indices], -1)
    exist = torch.cat([torch.ones_like(drafts.tokens[..., None], dtype=torch.bool), best.values > 0.0], -1)
    missing = siblings - 1 - count  # a codebook smaller than the tree
    pad = torch.nn.functional.pad
    return Candidates(pad(tokens, (0, missing)), pad(exist, (0, missing)))


@dataclass
class Branches:
    """The tree of one step, with the law that each of its nodes gave."""

    tree: Tree
    tokens: Tensor  # [L, d, K] int64
    real: Tensor  # [L, d, K] bool: a candidate to be tested
    laws: Tensor  # [L, D + 1 + E, V]: laws of root and chain, then of the extra nodes
    make_coins: Callable[[], Tensor] = field(repr=False)

    @cached_property
    def coins(self) -> Tensor:
        """[L, d, K - 1] uniform numbers for the tests of second and later candidates."""
        return self.make_coins()

    @cached_property
    def _row(self) -> Tensor:
        return upload(self.tree.row, self.laws.device)

    @cached_property
    def _path(self) -> Tensor:
        return upload(self.tree.path, self.laws.device)

    @cached_property
    def _lane(self) -> Tensor:
        return torch.arange(len(self.laws), device=self.laws.device)

    def law_after(self, node: Tensor) -> Tensor:
        """The law that follows `node` ([L]): [L, V]."""
        return self.laws[self._lane, self._row[node]]

    def rows_along(self, node: Tensor) -> Tensor:
        """Rows of the nodes on the way to `node` ([L]) and on by first candidates: [L, d]."""
        return self._row[self._path[node]]

    def tokens_along(self, node: Tensor) -> Tensor:
        """Their tokens: [L, d]."""
        choice = upload(self.tree.choice, node.device)[self._path[node]]
        return self.tokens.gather(-1, choice[..., None]).squeeze(-1)

    def laws_along(self, node: Tensor) -> Tensor:
        """[L, D + 1, V] laws of the window's positions: those of the way, then those of the chain."""
        path = self.laws[self._lane[:, None], self.rows_along(node)]
        return torch.cat([self.laws[:, :1], path, self.laws[:, path.shape[1] + 1 : self.tree.drafts + 1]], 1)
