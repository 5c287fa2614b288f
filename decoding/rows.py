"""Rows as lanes: several rows of the grid are decoded at once (PJD, arXiv 2606.05703; ZipAR, ICML 2025)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .device import upload
from .errors import DecodingError
from .grid import TokenGrid
from .lanes import ACCEPTED, FRONTIER, NOTHING, Lanes, Stream
from .schedules import SLOT_MULTIPLE, StepPlan, check_window, round_up


@dataclass
class OpenRow:
    """A row of the grid while it is open."""

    number: int
    length: int  # next stream position to fix
    cached: int


@dataclass(frozen=True)
class RowParallel:
    """One lane a row. Row r + 1 opens when row r has `threshold` fixed tokens.

    The topmost unfinished row is the frontier: it sees all that comes before, and commits accepted drafts and
    one token more. What the rows below commit is `lower`: ACCEPTED drafts (PJD), FRONTIER like the top row
    (ZipAR, whose window is 0), or NOTHING: then they only prepare drafts, all commits happen in raster order
    with full context, and the promise of the verifier stands.

    A query sees the prompt, all fixed tokens before it in raster order, and the drafts before it in its own
    row; never drafts of other rows. A row below the frontier drafts no further than the row above it reaches
    (PJD):
        drafts of row r <= fixed tokens of row r - 1 - fixed tokens of row r - 1 more.
    Its first token is predicted from a *starter*: the row-end tokens where the family has them, else a
    scratch copy, at the position before the row, of the token above that position (or the newest of the row
    above). The paper's c counts the starter: its 9 is our 8.
    """

    window: int
    threshold: int
    lower: int = ACCEPTED

    def __post_init__(self) -> None:
        check_window(self.window)
        if self.threshold < 1:
            raise DecodingError(f"the context threshold must be at least 1 token, got {self.threshold}")
        if self.lower not in (NOTHING, ACCEPTED, FRONTIER):
            raise DecodingError(f"unknown commit rule {self.lower}")

    @property
    def drafting(self) -> bool:
        return self.window > 0

    def facts(self) -> list[str]:
        width = f"window {self.window}" if self.drafting else "one token a row a pass"
        rule = ["lower rows only draft"] if self.lower == NOTHING else []
        return [width, f"rows open after {self.threshold} tokens", *rule]

    def cache_slots(self, stream: Stream) -> int:
        grid = stream.grid
        kept = stream.known[:, stream.position_of_cell].any()
        rows = grid.rows if kept else self.most_rows(grid)  # a kept row passes any threshold at once
        widest = grid.stride + 1 + self.window  # a row of kept tokens, its starter, and drafts
        return round_up(grid.length + rows * widest, SLOT_MULTIPLE)

    def most_laws(self, grid: TokenGrid) -> int:
        return self.most_rows(grid) * (self.window + 1)

    def most_rows(self, grid: TokenGrid) -> int:
        """Rows open at once, at most, where nothing is kept: all but the lowest have passed the threshold."""
        spare = max(grid.cols - self.threshold, 0)
        # PJD's rows lag one token at least behind the row above, ZipAR's a threshold; rows that only draft
        # stay empty.
        passed = {ACCEPTED: spare + 1, FRONTIER: spare // self.threshold + 1, NOTHING: 1}[self.lower]
        return min(grid.rows, passed + 1)

    def open(self, stream: Stream) -> Lanes:
        return self._lanes(stream, {i: [self._row(stream, i, 0)] for i in range(stream.batch)})[0]

    def _row(self, stream: Stream, image: int, number: int) -> OpenRow:
        grid, first = stream.grid, number * stream.grid.stride
        length = int(stream.next_unknown(image, first))
        cached = 0 if number == 0 else first - len(grid.row_end)
        return OpenRow(number, min(length, first + grid.cols), cached)

    def _lanes(
        self, stream: Stream, rows: dict[int, list[OpenRow]], before: dict[tuple[int, int], int] | None = None
    ) -> tuple[Lanes, np.ndarray]:
        """Lanes of the open rows, and the present lane of each where `before` knows it by (image, row)."""
        grid, most = stream.grid, max(len(of_image) for of_image in rows.values())
        table, origin = [], []
        for image, of_image in rows.items():
            frontier = next(
                (row.number for row in of_image if row.length < _end(grid, row.number)), grid.rows
            )
            for row in of_image:
                begin, end = max(row.number * grid.stride - len(grid.row_end), 0), _end(grid, row.number)
                rule = FRONTIER if row.number == frontier else self.lower
                commits = NOTHING if row.length >= end else rule
                table.append((image, begin, end, row.length, row.cached, commits))
                origin.append((before or {}).get((image, row.number), -1))
            idle = most - len(of_image)
            table += [(image, grid.length, grid.length, grid.length, grid.length, NOTHING)] * idle
            origin += [-1] * idle
        return Lanes(most, *np.array(table, np.int64).T), np.array(origin, np.int64)

    def plan(self, lanes: Lanes, stream: Stream, cache_slots: int) -> StepPlan:
        grid, per_image = stream.grid, lanes.per_image
        idle = lanes.begin >= grid.length
        first = lanes.end - grid.cols
        fixed = np.minimum(lanes.length - first, grid.cols)
        above_done = _neighbour(lanes.done, per_image, -1, True)
        reach = _neighbour(fixed, per_image, -1, 0) - fixed - 1  # PJD: no further than the row above
        limited = (self.lower == ACCEPTED) & ~above_done
        limit = np.where(limited, np.minimum(reach, self.window), self.window)
        counts = np.where(lanes.done, 0, np.minimum(limit, lanes.end - lanes.length).clip(min=0))

        starts = ~idle & ~above_done & (lanes.length == first) & (len(grid.row_end) == 0)
        start = np.where(starts, lanes.length, np.minimum(lanes.cached, lanes.length - 1))
        # A finished row is fed only until its last token is cached; a row without tokens feeds its true
        # predecessor itself, and the finished row above leaves that one to it.
        fed = np.where(idle | (lanes.done & (lanes.cached >= lanes.length)), 0, lanes.length - start + starts)
        covered = np.where(starts | idle, 0, np.maximum(lanes.begin - start, 0))
        fed = np.where(lanes.done, np.maximum(fed - _neighbour(covered, per_image, 1, 0), 0), fed)
        pending, drafts = max(int(fed.max()), 1), int(counts.max())
        width = pending + drafts
        column = np.arange(width)[None] - (pending - fed)[:, None]  # 0 at the first fed token
        real = (column >= 0) & (column < (fed + counts)[:, None])
        at = start[:, None] + column - starts[:, None]  # a starter stands one position before the row
        lane = np.arange(len(lanes))[:, None] % per_image
        scratch = grid.length + lane * width + np.arange(width)[None]
        is_starter = real & starts[:, None] & (column == 0)
        sources = np.where(is_starter, self._starter_source(lanes, grid)[:, None], np.where(real, at, 0))
        slots = np.where(real & ~is_starter, at, scratch)
        return StepPlan(
            pending=pending,
            drafts=drafts,
            sources=sources,
            positions=np.where(real, at, 0).clip(0, grid.length - 1),
            slots=slots,
            counts=counts,
            cached=np.where(idle, lanes.cached, np.maximum(lanes.cached, lanes.length)),
            commits=lanes.commits,
            extent=min(round_up(int(slots.max()) + 1, SLOT_MULTIPLE), cache_slots),
            starters=is_starter,
        )

    def _starter_source(self, lanes: Lanes, grid: TokenGrid) -> np.ndarray:
        """Position of the token that stands in for the missing one before each row: [L]."""
        newest_above = _neighbour(lanes.length, lanes.per_image, -1, 0) - 1
        over_it = lanes.end - grid.cols - 1 - grid.stride  # the cell above the missing token
        known = (over_it >= 0) & _neighbour(lanes.done, lanes.per_image, -2, True)
        return np.where(known, over_it, newest_above)

    def visible(self, plan: StepPlan, lanes: Lanes, slots: Tensor) -> Tensor:
        device, per_image = slots.device, lanes.per_image
        slot = torch.arange(plan.extent, device=device)
        begin, length = upload(lanes.begin, device)[:, None], upload(lanes.length, device)[:, None]
        fixed = (slot >= begin) & (slot < length)  # [L, K] of each lane
        fixed = fixed.view(-1, per_image, plan.extent).any(1)
        fixed |= slot < begin[::per_image]  # rows that are closed
        fixed = fixed.repeat_interleave(per_image, 0)[:, None]  # [L, 1, K]
        here = upload(plan.positions, device)[..., None]  # [L, F, 1]
        seen = (slot <= here) & (fixed | (slot >= length[..., None]))
        itself = slot == slots[..., None]
        starting = upload(plan.starters, device)[..., None]  # [L, F, 1]
        starter = (starting & itself).any(1, keepdim=True)  # [L, 1, K]: seen by its own lane alone
        real = upload(plan.slots == plan.positions, device)[..., None]
        return (seen & (real | starting)) | (starter & real) | itself

    def advance(self, lanes: Lanes, stream: Stream) -> tuple[Lanes, np.ndarray]:
        grid = stream.grid
        rows: dict[int, list[OpenRow]] = {}
        before = {}
        for i, image in enumerate(lanes.image.tolist()):
            of_image = rows.setdefault(image, [])
            if lanes.begin[i] < grid.length:
                number = int(lanes.end[i] - grid.cols) // grid.stride
                of_image.append(OpenRow(number, int(lanes.length[i]), int(lanes.cached[i])))
                before[image, number] = i
        rows = {image: self._next_rows(stream, image, of_image) for image, of_image in rows.items()}
        going = {image: of_image for image, of_image in rows.items() if of_image}
        return self._lanes(stream, going, before) if going else (lanes, np.arange(len(lanes)))

    def _next_rows(self, stream: Stream, image: int, rows: list[OpenRow]) -> list[OpenRow]:
        """Close rows that are done and cached, open the next where the last has enough context; [] when all
        is done."""
        grid = stream.grid
        while rows and rows[0].length >= _end(grid, rows[0].number):
            first = rows[0]
            if first.number == grid.rows - 1:
                return []
            if len(rows) == 1:
                rows.append(self._row(stream, image, first.number + 1))
            following = rows[1]
            begins = following.number * grid.stride
            if following.length == begins:
                # It has no token yet: it feeds what the row above still has to, and its true predecessor.
                following.cached = min(following.cached, first.cached, begins - 1)
            elif first.cached < first.length:
                break
            rows.pop(0)
        last = rows[-1]
        if last.number + 1 < grid.rows and last.length - last.number * grid.stride >= self.threshold:
            rows.append(self._row(stream, image, last.number + 1))
        return rows


def _end(grid: TokenGrid, number: int) -> int:
    """One past the last cell of a row."""
    return number * grid.stride + grid.cols


def _neighbour(values: np.ndarray, per_image: int, offset: int, fill: object) -> np.ndarray:
    """`values` [L] of the lane `offset` rows below each lane (above, if negative), `fill` where there is
    none."""
    shifted = np.full_like(values, fill).reshape(-1, per_image)
    table = values.reshape(-1, per_image)
    if abs(offset) < per_image:
        if offset < 0:
            shifted[:, -offset:] = table[:, :offset]
        else:
            shifted[:, :-offset] = table[:, offset:]
    return shifted.reshape(-1)
