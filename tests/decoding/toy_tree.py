"""A toy target for trees: it reads the prefix off the positions that were written to the visible slots."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .toy import ToyTarget


class ToyTree(ToyTarget):
    """Every query must see each position up to its own exactly once, whatever slots they lie in.

    A query that does not gets NaN, which stops the decode; but for queries at the last position, which have
    no successor, and which stand for padding.
    """

    def prefill(self, prompts: Sequence[object], slots: int) -> Tensor:
        self.position_of = torch.full((len(prompts), slots), -1)
        self.moved = 0
        return super().prefill(prompts, slots)

    def forward(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        self.feed(inputs, positions, slots, visible)
        length = self.grid.length
        self.position_of.scatter_(1, slots, positions)
        extent = visible.shape[-1]
        cached, at = self.cache[:, None, :extent], self.position_of[:, None, :extent]
        seen = torch.zeros(*inputs.shape, length + 1, dtype=torch.int64)
        where = torch.where(visible, at, length).masked_fill(visible & (cached < 0), length)
        seen.scatter_add_(-1, where, torch.ones_like(where))
        proper = (seen[..., :length] == (torch.arange(length) <= positions[..., None])).all(-1)
        powers = torch.cat([self.powers, self.powers.new_zeros(1)])
        codes = ((cached + 1) * powers[where]).sum(-1)
        logits = self.table[torch.where(proper, codes, 0)].clone()
        logits[~proper] = torch.nan
        logits[positions == length - 1] = 0.0
        return logits

    def move(self, source: Tensor, destination: Tensor) -> None:
        self.moved += int((source != destination).any(-1).sum())
        taken = self.position_of.gather(1, source)
        inside = destination < self.grid.length
        assert torch.equal(taken[inside], destination[inside])  # a slot of the stream holds its own position
        self.position_of.scatter_(1, destination, taken)
        super().move(source, destination)

    def retain(self, images: Sequence[int]) -> None:
        self.position_of = self.position_of[list(images)]
        super().retain(images)
