"""Rotary position embedding over interleaved channel pairs, as complex numbers.

Channels (2p, 2p + 1) of a head form the complex number x + iy: turning it by an angle is one multiplication,
several times faster than the same written in real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..decoding.grid import TokenGrid


@dataclass(frozen=True)
class Turns:
    """How far each place turns queries and keys, complex numbers."""

    prompt: Tensor  # [R or 1, T, D / 2]: the prompt, padding included
    table: Tensor  # [P, D / 2]: what stream positions take their turns from
    # [R] int64: the row of `table` that stream position 0 of each row takes. None: row 0, for all.
    first: Tensor | None = None


def rotation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Float type in which angles and rotations are computed for a model of that type."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def grid_rotation(grid: TokenGrid, head_dim: int, base: float, dtype: torch.dtype) -> Tensor:
    """LlamaGen's 2-D form: the first half of the pairs turns with the row, the second half with the column.

    Returns complex [cells, head_dim / 2]: one turn for each pair at each cell, raster order. `dtype` is the
    float type of the angles.
    """
    pairs = head_dim // 2
    each = pairs // 2  # frequencies for the rows, and as many for the columns
    frequency = 1.0 / base ** (torch.arange(0, pairs, 2, dtype=dtype)[:each] / pairs)  # [each]
    rows = torch.arange(grid.rows, dtype=dtype)[:, None] * frequency  # [rows, each]
    cols = torch.arange(grid.cols, dtype=dtype)[:, None] * frequency  # [cols, each]
    size = (grid.rows, grid.cols, each)
    angles = torch.cat([rows[:, None].expand(size), cols.expand(size)], dim=-1).reshape(grid.cells, pairs)
    return torch.polar(torch.ones_like(angles), angles)


def line_turns(visible: Tensor, length: int, head_dim: int, base: float, dtype: torch.dtype) -> Turns:
    """The common 1-D form: positions 0, 1, 2, … over prompt and stream.

    `visible` [R, T] is False at padding, on the left: each row counts from its own first visible token, so
    that its numbers do not depend on the prompts it shares a batch with. `length` counts stream positions,
    `dtype` is the float type of the angles.
    """
    device, columns = visible.device, visible.shape[1]
    padding = (~visible).sum(1)  # [R]
    frequency = 1.0 / base ** (torch.arange(0, head_dim, 2, dtype=dtype, device=device) / head_dim)  # [D / 2]
    angles = torch.arange(columns + length, dtype=dtype, device=device)[:, None] * frequency
    table = torch.polar(torch.ones_like(angles), angles)
    prompt = torch.arange(columns, device=device) - padding[:, None]  # [R, T]
    return Turns(table[prompt.clamp(min=0)], table, columns - padding)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn `x` [R, N, heads, D] by `rotation`, complex [R or 1, N, 1, D / 2], in the precision of that."""
    pairs = x.to(rotation.real.dtype).unflatten(-1, (-1, 2))
    return torch.view_as_real(torch.view_as_complex(pairs) * rotation).flatten(-2).to(x.dtype)
