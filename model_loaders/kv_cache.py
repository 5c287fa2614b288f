"""Keys and values of one run: allocated once, addressed by column, never sliced and concatenated.

Columns 0 .. T-1 hold the prompt, column T + s holds slot s. Heads come before columns, so that the keys of one head
are contiguous: with one query a row this was the fastest layout for attention on the CPU by up to a third (float32,
LlamaGen-B: 37 us against 55 us with columns first), with 32 queries it made no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# A place to write to: a slice where all rows write the same run of columns, else (rows [R, 1], columns [R, N]).
Place = slice | tuple[Tensor, Tensor]


class KVCache:
    """`layers` pairs of keys and values, each [R, H, C, D]: rows, key heads, columns, head size.

    Starts as zeros: attention never reads what is hidden, but a NaN there would spread through 0 * NaN.
    """

    def __init__(
        self,
        layers: int,
        rows: int,
        heads: int,
        columns: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shape = (layers, 2, rows, heads, columns, head_dim)
        self.storage = torch.zeros(shape, dtype=dtype, device=device)
        self._use(rows)

    def _use(self, rows: int) -> None:
        """Work with the first `rows` rows of the storage from now on."""
        self.rows = rows
        self.layers = [(keys[:rows], values[:rows]) for keys, values in self.storage]

    def place(self, columns: Tensor) -> Place:
        """Where `columns` [R, N] are written to, worked out once for all layers.

        The fast path needs the numbers on the host, so it is taken for CPU tensors only: elsewhere the look would
        stall the device.
        """
        if columns.device.type == "cpu":
            first, width = int(columns[0, 0]), columns.shape[1]
            if torch.equal(columns, torch.arange(first, first + width).expand_as(columns)):
                return slice(first, first + width)
        device = self.storage.device
        return torch.arange(self.rows, device=device)[:, None], columns.to(device)

    def move(self, source: Tensor, destination: Tensor) -> None:
        """Copy columns `source` to `destination`, both [R, M], in all layers."""
        device = self.storage.device
        rows = torch.arange(self.rows, device=device)[:, None]
        source, destination = source.to(device), destination.to(device)
        for pair in self.layers:
            for cached in pair:
                # Indexing copies, so that source and destination may overlap.
                cached[rows, :, destination] = cached[rows, :, source]

    def retain(self, rows: Sequence[int]) -> None:
        """Keep these rows (ascending) and forget the others."""
        # Ascending: a row only ever moves to the front, over rows that have been moved already or are dropped.
        for new, old in enumerate(rows):
            if new != old:
                self.storage[:, :, new].copy_(self.storage[:, :, old])
        self._use(len(rows))


def write(cached: Tensor, place: Place, fresh: Tensor) -> None:
    """Put `fresh` [R, N, H, D] into `cached` [R, H, C, D]."""
    if isinstance(place, slice):
        cached[:, :, place].copy_(fresh.transpose(1, 2))
    else:
        rows, columns = place
        cached[rows, :, columns] = fresh
