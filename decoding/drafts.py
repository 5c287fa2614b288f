"""Drafts: each a token together with the law that it was drawn from. The two never part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class History(NamedTuple):
    """Earlier target laws of the drafts' positions, for laws that look back."""

    laws: Tensor  # [L, W, N, V], newest first
    age: Tensor  # [L, W] int64, how many of them there are


class Trajectories(NamedTuple):
    """Where each draft stands on its way from noise to a token (SJD2)."""

    embeddings: Tensor  # [L, W, E], under noise
    left: Tensor  # [L, W] int64 passes under noise that are left; 0: the draft is fed as its token

    def replaced(self, where: Tensor, others: Trajectories) -> Trajectories:
        """These, and the others where `where` ([L, W] bool) says so."""
        embeddings = torch.where(where[..., None], others.embeddings, self.embeddings)
        return Trajectories(embeddings, torch.where(where, others.left, self.left))


@dataclass(frozen=True)
class Drafts:
    """Proposals for W consecutive stream positions of each lane.

    `laws[l, j]` is the *declared law* of `tokens[l, j]`: given everything ever drawn at positions to the
    left, the token is distributed by it. Exactness of the token test rests on this alone (column causality).
    """

    tokens: Tensor  # [L, W] int64
    laws: Tensor  # [L, W, V]
    history: History | None = None
    trajectories: Trajectories | None = None

    @classmethod
    def none(cls, like: Tensor) -> Drafts:
        """No drafts for lanes whose laws look like `like` ([L, ..., V])."""
        lanes, vocabulary = like.shape[0], like.shape[-1]
        empty = like.new_empty(lanes, 0, vocabulary)
        return cls(torch.empty(lanes, 0, dtype=torch.int64, device=like.device), empty)

    def first(self, width: int) -> Drafts:
        """The first `width` columns."""
        return self._map(lambda field: field[:, :width])

    def carry(
        self,
        lanes: Tensor,  # [L'] int64: which lane each lane of the next step continues
        columns: Tensor,  # [L, W'] int64: which of our W columns goes where; may point past the end
        fresh: Drafts,  # [L, W'] drafts for the columns that point past the end
    ) -> Drafts:
        """The next step's drafts: surviving columns moved to the front, fresh ones behind them."""
        width = self.tokens.shape[1]
        new = columns >= width
        moved = self._map(lambda field: field[lanes[:, None], columns.clamp(max=width - 1)])
        history, trajectories = moved.history, moved.trajectories
        if history is not None:
            history = History(history.laws, torch.where(new, 0, history.age))
        if trajectories is not None and fresh.trajectories is not None:
            trajectories = trajectories.replaced(new, fresh.trajectories)
        tokens = torch.where(new, fresh.tokens, moved.tokens)
        laws = torch.where(new[..., None], fresh.laws, moved.laws)
        return Drafts(tokens, laws, history, trajectories)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Drafts:
        history = self.history and History(*map(change, self.history))
        trajectories = self.trajectories and Trajectories(*map(change, self.trajectories))
        return Drafts(change(self.tokens), change(self.laws), history, trajectories)
