"""Keys and values of one run: allocated once, addressed by column, never sliced and concatenated.

Columns 0 .. T-1 hold the prompt, column T + s holds slot s. Heads come before columns, so that the keys of
one head are contiguous: with one query a row this was the fastest layout for attention on the CPU (LlamaGen-B
in float32, 264 columns: 37 us against 55 us with columns first); with 32 queries the layouts were equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LayerCache:
    """One layer's keys and values as one forward uses them."""

    keys: Tensor  # [R, H, A, D]: the columns that attention looks at
    values: Tensor
    new_keys: Tensor  # [R, N, H, D]: the columns that are written to; [R, C, H, D] with `place`
    new_values: Tensor
    place: tuple[Tensor, Tensor] | None  # rows [R, 1] and columns [R, N], where these are no common run

    def write(self, keys: Tensor, values: Tensor) -> None:
        """Store keys and values [R, N, H, D] of the inputs."""
        if self.place is None:
            self.new_keys.copy_(keys)
            self.new_values.copy_(values)
        else:
            self.new_keys[self.place] = keys
            self.new_values[self.place] = values


class KVCache:
    """Storage [layers, 2, R, H, C, D]: keys and values, rows, key heads, columns, head size.

    Starts as zeros: attention gives hidden columns the weight 0, and a NaN there would survive the product.
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
        self._storage = torch.zeros(shape, dtype=dtype, device=device)
        self.rows = rows

    @property
    def columns(self) -> Tensor:
        """The storage with columns in front, [layers, 2, R, C, H, D], without rows that were dropped."""
        return self._storage[:, :, : self.rows].transpose(3, 4)

    def open(self, columns: Tensor, seen: int) -> list[LayerCache]:
        """The layers for one forward, which writes to `columns` [R, N] and looks at the first `seen` columns.

        All views are made here, for all layers at once. Writing to one run of columns is faster than writing
        by index; finding out takes the columns on the host, so it is tried for CPU tensors only: elsewhere it
        would stall the device.
        """
        cache, place = self.columns, None
        if columns.device.type == "cpu" and (run := _common_run(columns)):
            new = cache[:, :, :, run]
        else:
            device = cache.device
            new, place = cache, (torch.arange(self.rows, device=device)[:, None], columns.to(device))
        looked_at = cache[:, :, :, :seen].transpose(3, 4).flatten(0, 1).unbind(0)
        written = new.flatten(0, 1).unbind(0)
        pairs = range(0, len(written), 2)
        return [LayerCache(*looked_at[i : i + 2], *written[i : i + 2], place) for i in pairs]

    def move(self, source: Tensor, destination: Tensor) -> None:
        """Copy columns `source` to `destination`, both [R, M], in all layers."""
        cache = self.columns
        rows = torch.arange(self.rows, device=cache.device)[:, None]
        source, destination = source.to(cache.device), destination.to(cache.device)
        # Indexing makes a copy, so that source and destination may overlap.
        cache[:, :, rows, destination] = cache[:, :, rows, source]

    def retain(self, rows: Sequence[int]) -> None:
        """Keep these rows (ascending) and forget the others."""
        # A row only ever moves to the front, onto a row that has been moved already or is dropped.
        for new, old in enumerate(rows):
            if new != old:
                self._storage[:, :, new].copy_(self._storage[:, :, old])
        self.rows = len(rows)


def _common_run(columns: Tensor) -> slice | None:
    """The run of columns that all rows of `columns` [R, N] are, if they are."""
    first, count = int(columns[0, 0]), columns.shape[1]
    run = torch.arange(first, first + count)
    return slice(first, first + count) if torch.equal(columns, run.expand_as(columns)) else None
