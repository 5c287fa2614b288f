"""Schedules: which lanes are open, which positions a step feeds, and what each input may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .errors import DecodingError
from .grid import TokenGrid
from .lanes import FRONTIER, NOTHING, Lanes, Stream

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
    sources: np.ndarray  # [L, F] int64: slot of the token buffer that is fed
    positions: np.ndarray  # [L, F] int64: stream position it is fed as
    slots: np.ndarray  # [L, F] int64: cache slot it is written to
    counts: np.ndarray  # [L] int64, drafts of each lane
    cached: np.ndarray  # [L] int64: positions cached once this step's pending tokens are
    commits: np.ndarray  # [L] int64: what each lane commits
    extent: int  # K, cache slots that the queries may see
    # [L, F] bool: stand-ins for a token that is not there yet, in scratch slots.
    starters: np.ndarray | None = None
    extra: int = 0  # E, inputs behind drafts and padding whose laws are wanted too


class Schedule(Protocol):
    """Opens and closes lanes, plans forwards. Keeps no state of a run: that is all in the lanes."""

    window: int

    @property
    def drafting(self) -> bool:
        """Whether a step feeds drafts."""

    def facts(self) -> list[str]:
        """Its settings in words, for reports."""

    def cache_slots(self, stream: Stream) -> int:
        """Slots that a run may touch: the stream, and scratch for padding and row starters."""

    def most_laws(self, grid: TokenGrid) -> int:
        """Laws that one step of an image compares, at most, where nothing is kept."""

    def open(self, stream: Stream) -> Lanes:
        """The lanes before the prefill."""

    def plan(self, lanes: Lanes, stream: Stream, cache_slots: int) -> StepPlan:
        """What the next forward feeds."""

    def visible(self, plan: StepPlan, lanes: Lanes, slots: Tensor) -> Tensor:
        """Which slots each input of `slots` ([L, F] int64, on the device) sees: [L, F, K] bool."""

    def advance(self, lanes: Lanes, stream: Stream) -> tuple[Lanes, np.ndarray]:
        """The lanes of the next step, and which present lane each continues (-1: none): [L'] int64.

        May leave finished images out; the others stay in their order.
        """


def prefill_plan(lanes: Lanes) -> StepPlan:
    """The prefill as a step: it feeds nothing of the stream and emits the first token, where that is not
    given."""
    none = np.zeros(len(lanes), np.int64)
    empty = np.zeros((len(lanes), 0), np.int64)
    commits = np.where(lanes.length == 0, FRONTIER, NOTHING)
    return StepPlan(0, 0, empty, empty, empty, none, none, commits, 0)


@dataclass(frozen=True)
class RasterWindow:
    """One lane an image: the last committed token and up to `window` drafts behind it, in raster order.

    window: W, drafts a step. Papers' L counts the committed token too: their 16 is our 15.
    pads_only: feed padding instead of drafts (step-by-step decoding in a decoder's shapes).
    fixed_shapes: every forward of a run has the same shape, a multiple of 32 inputs an image; images that are
        done stay in the batch. Then a token's logits are the same bits wherever in the window it is fed
        (where measured).
    """

    window: int
    pads_only: bool = False
    fixed_shapes: bool = False

    def __post_init__(self) -> None:
        check_window(self.window)

    @property
    def drafting(self) -> bool:
        return self.window > 0 and not self.pads_only

    def facts(self) -> list[str]:
        if not self.drafting:
            padded = [f"in forwards padded to window {self.window}"] if self.window else []
            return ["one token a pass", *padded]
        return [f"window {self.window}", *(["fixed shapes"] if self.fixed_shapes else [])]

    def cache_slots(self, stream: Stream) -> int:
        longest = stream.longest_known_run() + 1
        pending = max(min(longest, FEED_CHUNK), _usual_pending(stream.grid))
        return round_up(stream.grid.length + self._width(pending) + pending, SLOT_MULTIPLE)

    def most_laws(self, grid: TokenGrid) -> int:
        return self.window + 1

    def _width(self, pending: int) -> int:
        return round_up(pending + self.window, ROW_MULTIPLE) if self.fixed_shapes else pending + self.window

    def open(self, stream: Stream) -> Lanes:
        images, zero = np.arange(stream.batch), np.zeros(stream.batch, np.int64)
        first = stream.next_unknown(images, zero)
        return Lanes(1, images, zero, zero + stream.grid.length, first, zero.copy(), zero + FRONTIER)

    def plan(self, lanes: Lanes, stream: Stream, cache_slots: int) -> StepPlan:
        waiting, length = lanes.length - lanes.cached, stream.grid.length
        emits = ~lanes.done & (waiting <= FEED_CHUNK)
        fed = np.where(lanes.done, 0, np.minimum(waiting, FEED_CHUNK))
        counts = np.where(emits, np.minimum(self.window * self.drafting, length - lanes.length), 0)
        drafts = int(counts.max())
        pending = max(int(fed.max()), _usual_pending(stream.grid) if self.fixed_shapes else 1)
        width = self._width(pending) if self.fixed_shapes else pending + drafts
        column = np.arange(width)[None] - (pending - fed)[:, None]
        start = np.where(lanes.done, length, lanes.cached)[:, None]
        slots = np.where(column >= 0, start + column, cache_slots + column)  # left padding: the last slots
        used = min(round_up(int(slots.max()) + 1, SLOT_MULTIPLE), cache_slots)
        return StepPlan(
            pending=pending,
            drafts=drafts,
            sources=slots,
            positions=np.minimum(slots, length - 1),
            slots=slots,
            counts=counts,
            cached=lanes.cached + fed,
            commits=np.where(emits, FRONTIER, NOTHING),
            extent=cache_slots if self.fixed_shapes else used,
        )

    def visible(self, plan: StepPlan, lanes: Lanes, slots: Tensor) -> Tensor:
        """Causal: each input sees its own slot and all before it."""
        return torch.arange(plan.extent, device=slots.device) <= slots[..., None]

    def advance(self, lanes: Lanes, stream: Stream) -> tuple[Lanes, np.ndarray]:
        going = np.flatnonzero(~lanes.done)
        if self.fixed_shapes or len(going) in (0, len(lanes)):
            return lanes, np.arange(len(lanes))
        fields = (lanes.image, lanes.begin, lanes.end, lanes.length, lanes.cached, lanes.commits)
        return Lanes(1, *(field[going] for field in fields)), going


def check_window(window: int) -> None:
    if not 0 <= window <= 1024:
        raise DecodingError(f"window must lie in 0 to 1024 drafts, got {window}")


def _usual_pending(grid: TokenGrid) -> int:
    """Pending tokens between two steps: the last committed one and the row end behind it."""
    return 1 + len(grid.row_end)


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
