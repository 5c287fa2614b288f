"""Where the image tokens of one picture lie in the stream that the model reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TokenGrid:
    """`rows` x `cols` image tokens in raster order, with the family's row-end tokens between the rows.

    A *cell* is a place in the grid (0 .. rows * cols - 1). A *stream position* also counts the structure
    tokens. The stream ends at the last cell: what a family writes after it (row end, image end) has no later
    query, so it is never fed. Tokens are input ids: 0 .. V - 1 are codebook indices, ids from V on are
    structure tokens.

    Example: 2 x 3 cells with one row-end token (id 9) make 7 positions
        position   0   1   2   3   4   5   6
        what       c0  c1  c2  9   c3  c4  c5
    """

    rows: int
    cols: int
    row_end: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1:
            raise ValueError(
                f"a token grid needs at least one row and one column, got {self.rows} x {self.cols}"
            )

    @property
    def cells(self) -> int:
        """Image tokens of one picture."""
        return self.rows * self.cols

    @property
    def stride(self) -> int:
        """Stream positions from one cell to the cell below it."""
        return self.cols + len(self.row_end)

    @property
    def length(self) -> int:
        """Stream positions of one picture, structure tokens included."""
        return self.rows * self.stride - len(self.row_end)

    def cell_positions(self) -> np.ndarray:
        """Stream position of each cell, raster order: [cells] int64."""
        return (np.arange(self.rows)[:, None] * self.stride + np.arange(self.cols)[None, :]).reshape(-1)

    def structure(self) -> np.ndarray:
        """Input id at each stream position that holds a structure token, -1 at cells: [length] int64."""
        row = np.concatenate([np.full(self.cols, -1, np.int64), np.array(self.row_end, np.int64)])
        return np.tile(row, self.rows)[: self.length]
