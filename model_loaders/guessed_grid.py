"""Models whose weights fit any square grid, while only the one that they were trained on gives good
pictures."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..decoding.grid import TokenGrid
from .checkpoint import Checkpoint
from .image_model import ImageModel

SIDES = {256: 16, 384: 24, 512: 32}  # pixels of the published files -> tokens a side
PIXELS = re.compile(rf"(?<!\d)({'|'.join(map(str, SIDES))})(?!\d)")
PUBLISHED = "set 16 for a file for 256 pixels, 24 for 384, 32 for 512"
ROTARY_TABLE = "freqs_cis"  # some training code saves it along: a row a position


@dataclass(frozen=True)
class GridHint:
    """What a file tells of the grid that it was trained on."""

    side: int  # tokens
    reason: str


class GuessedGrid(ImageModel):
    """Nothing in the weights says the grid, so the first of `grids` is a guess, and is said to be one."""

    hint: GridHint | None = None

    def grid_words(self) -> str:
        """What is known of the grid, for the list of models."""
        default = self.grids[0].rows
        if self.hint is None:
            return f"trained grid unknown: rows and columns 0 give {default} x {default}; {PUBLISHED}"
        words = f"trained on {self.hint.side} x {self.hint.side} tokens ({self.hint.reason})"
        if self.hint.side == default:
            return f"{words}, which rows and columns 0 give"
        return f"{words}: set rows and columns to {self.hint.side}; 0 gives {default} x {default}"

    def grid_warning(self, grid: TokenGrid, chosen: bool) -> str:
        """Why pictures of this grid may come out poor, and what to set; empty where nothing is wrong.

        chosen: by a person, who is not asked again where the file tells nothing.
        """
        hint = self.hint
        if hint is not None and (grid.rows, grid.cols) != (hint.side, hint.side):
            return (
                f"warning: trained on {hint.side} x {hint.side} tokens ({hint.reason}), other grids give "
                f"poor pictures: set rows and columns to {hint.side}"
            )
        if hint is None and not chosen:
            return f"{grid.rows} x {grid.cols} tokens are a guess, the file does not say; {PUBLISHED}"
        return ""


def grid_hint(checkpoint: Checkpoint, prefix: int) -> GridHint | None:
    """From the rows of a rotary table (prefix and a square), else from the pixels in the file's name."""
    if ROTARY_TABLE in checkpoint:
        cells = checkpoint.tensors[ROTARY_TABLE].shape[0] - prefix
        side = math.isqrt(max(cells, 0))
        if side > 1 and side * side == cells:
            return GridHint(side, f"its rotary table has {cells} positions")
    named = set(PIXELS.findall(checkpoint.path.name))
    if len(named) != 1:
        return None
    (pixels,) = named
    return GridHint(SIDES[int(pixels)], f"{pixels} in its name")
