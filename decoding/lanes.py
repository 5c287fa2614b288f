"""Lanes: runs of stream positions that are decoded left to right. Host side, numpy, one entry a lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .grid import TokenGrid

# What a lane commits in a step.
NOTHING, ACCEPTED, FRONTIER = 0, 1, 2  # only drafts; accepted drafts; accepted drafts and one token more


@dataclass
class Lanes:
    """Where each lane stands: `per_image` lanes an image, those of one image side by side, idle ones last.

    Positions of a lane below `cached` are in the cache, those from `begin` to below `length` are fixed. What
    lies between is *pending*: known but not yet fed. `length` equals `end` when a lane is done; it never
    rests on a known token (structure, kept), since those need no decision.
    """

    per_image: int
    image: np.ndarray  # [L] int64, image of the run
    begin: np.ndarray  # [L] int64, first position, row ends in front of the first cell included
    end: np.ndarray  # [L] int64, one past the last position
    length: np.ndarray  # [L] int64, next position to fix
    cached: np.ndarray  # [L] int64
    commits: np.ndarray  # [L] int64: NOTHING, ACCEPTED or FRONTIER

    def __len__(self) -> int:
        return len(self.image)

    @property
    def done(self) -> np.ndarray:
        """[L] bool: no position left to fix."""
        return self.length >= self.end

    @property
    def images(self) -> np.ndarray:
        """The images of the running batch, in its order: [B]."""
        return self.image[:: self.per_image]


class Stream:
    """The stream of one run: which positions are known beforehand, and where the cells are. [B, S]
    throughout."""

    def __init__(
        self,
        grid: TokenGrid,
        kept: np.ndarray,  # [B, cells] int64: fixed token of each cell, -1 where it is to be decoded
    ) -> None:
        self.grid = grid
        structure = grid.structure()
        self.tokens = np.tile(structure, (len(kept), 1))
        self.tokens[:, grid.cell_positions()] = kept
        self.known = self.tokens >= 0
        # Cell of a position; at a structure token the cell before it.
        self.cell_of = np.cumsum(structure < 0) - 1
        self.position_of_cell = grid.cell_positions()
        self._next_unknown = self._scan_unknown()

    @property
    def batch(self) -> int:
        return len(self.tokens)

    def _scan_unknown(self) -> np.ndarray:
        length = self.known.shape[1]
        following = np.where(self.known, length, np.arange(length)[None])
        following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([following, np.full((len(following), 1), length)], axis=1)

    def next_unknown(self, image: np.ndarray, position: np.ndarray) -> np.ndarray:
        """The first position at or after `position` that is to be decoded, the stream's length if none:
        [L]."""
        return self._next_unknown[image, np.minimum(position, self.known.shape[1])]

    def longest_known_run(self) -> int:
        """Known tokens in a row at most, over all images."""
        following = self._next_unknown[:, :-1] - np.arange(self.known.shape[1])[None]
        return int(following.max())


def neighbours(
    stream: Stream,
    lanes: Lanes,
    edge: np.ndarray,  # [L] first position never tried
    positions: np.ndarray,  # [L, M] of the next drafts
) -> np.ndarray:
    """Positions of the cells that new drafts may copy: the one left of the edge, then the one above each
    draft, in a row that was tried: [L, 1 + M]."""
    grid = stream.grid
    last = grid.length - 1
    left = stream.position_of_cell[stream.cell_of[(edge - 1).clip(0, last)]]
    rows_up = np.maximum(positions - edge[:, None], 0) // grid.stride + 1
    above = np.minimum(positions, last) - rows_up * grid.stride
    above = np.where(above < 0, left[:, None], above)
    above = stream.position_of_cell[stream.cell_of[above]]  # a cell, where a row end lies above
    # What lies before the first cell of a row below the frontier may not be there yet.
    at_start = (edge <= lanes.end - grid.cols) & (lanes.commits != FRONTIER)
    if positions.shape[1]:
        left = np.where(at_start, above[:, 0], left)
    return np.column_stack([left, above])
