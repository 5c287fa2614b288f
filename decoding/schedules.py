"""Schedules: which positions a step feeds, which of them are drafts, and what each input may see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .errors import DecodingError
from .grid import TokenGrid
from .lanes import Lanes

# CPU attention and GEMM kernels treat rows in blocks of up to 32; a token's logits keep their bits wherever
# it sits in a window only if no row falls into a remainder block.
ROW_MULTIPLE = 32
# Keys beyond the filled part of the cache cost time; the extent grows in steps so that few shapes occur.
SLOT_MULTIPLE = 64
# Known tokens (kept rows) are fed in chunks, so that their unused logits stay small.
FEED_CHUNK = 256


@dataclass(frozen=True)
class StepPlan:
    """One forward: `pending` known tokens of each lane, right-aligned, then `drafts` drafts, then padding.

    A lane with fewer pending tokens is padded on the left, one with fewer drafts on the right; padding writes
    scratch slots, or slots that are overwritten before any query sees them.
    """

    pending: int  # columns before the first draft
    drafts: int  # D, drafts of the fullest lane
    slots: np.ndarray  # [L, F] int64
    counts: np.ndarray  # [L] int64, drafts of each lane
    fed: np.ndarray  # [L] int64, pending tokens of each lane that this step feeds
    emits: np.ndarray  # [L] bool: commits a token after its accepted drafts
    extent: int  # K, cache slots that the queries may see


@dataclass(frozen=True)
class RasterWindow:
    """One lane an image: the last committed token and up to `window` drafts behind it, in raster order.

    window: W, drafts a step. Papers' L counts the committed token too: their 16 is our 15.
    drafting: False feeds padding instead of drafts (step-by-step decoding in a decoder's shapes).
    fixed_shapes: every forward of a run has the same shape, a multiple of 32 inputs an image; images that are
        done stay
        in the batch. Then a token's logits are the same bits wherever in the window it is fed (where
        measured).
    """

    window: int
    drafting: bool = True
    fixed_shapes: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.window <= 1024:
            raise DecodingError(f"window must lie in 0 to 1024 drafts, got {self.window}")

    def cache_slots(self, grid: TokenGrid, longest_pending: int) -> int:
        """Slots that a run may touch: the stream, and scratch for padding."""
        pending = max(min(longest_pending, FEED_CHUNK), _usual_pending(grid))
        width = self._width(pending)
        return _up(grid.length + width + pending, SLOT_MULTIPLE)

    def _width(self, pending: int) -> int:
        return _up(pending + self.window, ROW_MULTIPLE) if self.fixed_shapes else pending + self.window

    def plan(self, lanes: Lanes, grid: TokenGrid, cache_slots: int) -> StepPlan:
        """What the next forward feeds."""
        waiting = lanes.length - lanes.cached
        done = lanes.length >= grid.length
        emits = ~done & (waiting <= FEED_CHUNK)
        fed = np.where(done, 0, np.minimum(waiting, FEED_CHUNK))
        counts = np.where(emits, np.minimum(self.window * self.drafting, grid.length - lanes.length), 0)
        drafts = int(counts.max())
        pending = max(int(fed.max()), _usual_pending(grid) if self.fixed_shapes else 1)
        width = self._width(pending) if self.fixed_shapes else pending + drafts
        column = np.arange(width)[None] - (pending - fed)[:, None]
        start = np.where(done, grid.length, lanes.cached)
        slots = np.where(
            column >= 0, start[:, None] + column, cache_slots + column
        )  # left padding: the last slots
        extent = (
            cache_slots if self.fixed_shapes else min(_up(int(slots.max()) + 1, SLOT_MULTIPLE), cache_slots)
        )
        return StepPlan(pending, drafts, slots, counts, fed, emits, extent)

    def visible(
        self,
        slots: Tensor,  # [L, F] int64
        extent: int,
    ) -> Tensor:
        """Causal: each input sees its own slot and all before it. [L, F, K] bool."""
        return torch.arange(extent, device=slots.device) <= slots[..., None]


def _usual_pending(grid: TokenGrid) -> int:
    """Pending tokens between two steps: the last committed one and the row end behind it."""
    return 1 + len(grid.row_end)


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
