"""Where two token grids differ: in numbers, in words, and drawn over the picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from .drawing.canvas import AMBER, GREEN, SOFT, Canvas

SIDE, GAP, HEADER, MARGIN, FRAME = 336, 12, 40, 16, 2  # of a panel, in pixels
DIMMED = 0.4  # brightness of what is equal
TINT, STRENGTH = (253, 150, 40), 0.65  # of what differs


@dataclass(frozen=True)
class GridDifference:
    """Of one pair of pictures. differs: [rows, cols] bool."""

    differs: np.ndarray

    @property
    def count(self) -> int:
        return int(self.differs.sum())

    @property
    def equal_share(self) -> float:
        return 1 - self.count / self.differs.size

    @property
    def first(self) -> tuple[int, int] | None:
        """Row and column, counted from 1, of the first difference in the order in which the model draws."""
        if not self.count:
            return None
        row, column = np.argwhere(self.differs)[0]
        return int(row) + 1, int(column) + 1

    def words(self) -> str:
        cells = self.differs.size
        if self.first is None:
            return f"all {cells} tokens equal"
        return f"{self.count} of {cells} tokens differ, first in row {self.first[0]}, column {self.first[1]}"


def table(differences: list[GridDifference]) -> str:
    """A line for each picture and one for all, in Markdown."""
    lines = ["| picture | equal | different tokens | first difference |", "| --- | --- | --- | --- |"]
    for number, difference in enumerate(differences, 1):
        first = (
            "–" if difference.first is None else f"row {difference.first[0]}, column {difference.first[1]}"
        )
        lines.append(f"| {number} | {difference.equal_share:.1%} | {difference.count} | {first} |")
    total, cells = sum(d.count for d in differences), sum(d.differs.size for d in differences)
    same = sum(d.first is None for d in differences)
    lines.append(f"| all | {1 - total / cells:.1%} | {total} | {same} of {len(differences)} pictures equal |")
    return "\n".join(lines)


def difference_map(
    difference: GridDifference,
    picture: np.ndarray,  # [height, width, 3] uint8
) -> np.ndarray:
    """The picture dimmed and grey where tokens are equal, tinted where they differ, a frame around the first
    that does: the same shape."""
    height, width = picture.shape[:2]
    rows, cols = difference.differs.shape
    row_of, col_of = np.arange(height) * rows // height, np.arange(width) * cols // width
    differs = difference.differs[row_of[:, None], col_of[None]][..., None]
    grey = picture.mean(-1, keepdims=True).repeat(3, -1)
    drawn = np.where(differs, (1 - STRENGTH) * grey + STRENGTH * np.array(TINT), DIMMED * grey)
    if difference.first is not None:
        row, column = (place - 1 for place in difference.first)
        inside = (row_of == row)[:, None] & (col_of == column)[None]
        inner = np.pad(inside, FRAME)
        for shift in (FRAME, -FRAME):
            for axis in (0, 1):
                inner &= np.roll(inner, shift, axis)
        drawn[inside & ~inner[FRAME:-FRAME, FRAME:-FRAME]] = 255
    return drawn.round().astype(np.uint8)


def sheet(difference: GridDifference, one: Image.Image, other: Image.Image) -> Image.Image:
    """Both pictures and the map side by side, with what the map says above."""
    factor = SIDE / max(one.size)
    size = max(1, round(one.width * factor)), max(1, round(one.height * factor))
    enlarged = np.asarray(one.convert("RGB").resize(size, Image.Resampling.NEAREST))
    pictures = [one, other, Image.fromarray(difference_map(difference, enlarged))]
    titles = [
        ("tokens", SOFT),
        ("other tokens", SOFT),
        (difference.words(), AMBER if difference.count else GREEN),
    ]
    canvas = Canvas(3 * size[0] + 2 * GAP + 2 * MARGIN, size[1] + HEADER + MARGIN)
    for number, ((title, colour), picture) in enumerate(zip(titles, pictures, strict=True)):
        left = MARGIN + number * (size[0] + GAP)
        canvas.text((left, HEADER - 12), canvas.shortened(title, 13, size[0]), 13, colour)
        canvas.picture(picture, (left, HEADER, left + size[0], HEADER + size[1]))
    return canvas.finish()
