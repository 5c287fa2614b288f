"""Live previews: the partly filled grid as a picture, and how often there is time for one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

GREY = 0.5
PREVIEWED_PICTURES = 4  # of a batch
CRISP_SIDE = 384  # pictures smaller than this are enlarged by whole pixels


def preview_words(pictures: int) -> str:
    """What a preview leaves out of so many pictures; empty where it shows them all."""
    return f"preview: {PREVIEWED_PICTURES} of {pictures} pictures" if pictures > PREVIEWED_PICTURES else ""


@dataclass
class PreviewBudget:
    """Lets a preview through at most every `interval` seconds, and only while all of them together stay
    within `share` of the time that the run has taken so far.
    """

    interval: float = 0.2
    share: float = 0.1
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        self.started = self.last = self.clock()
        self.spent = 0.0
        self.cost = 0.0  # of the latest preview

    def due(self) -> bool:
        now = self.clock()
        affordable = self.spent + self.cost <= self.share * (now - self.started)
        return affordable and now - self.last >= self.interval

    def draw(self, make: Callable[[], Image.Image]) -> Image.Image:
        """Runs `make` and takes its time off the budget."""
        before = self.clock()
        picture = make()
        self.last = self.clock()
        self.cost = self.last - before
        self.spent += self.cost
        return picture


def without_holes(grids: Tensor) -> Tensor:
    """Open cells (-1) take the token above them, so that the picture's edge is not decoded beside noise.

    [B, rows, cols] -> [B, rows, cols]. Cells of a column that is open from the top take token 0.
    """
    filled = grids.clamp(min=0)
    for row in range(1, grids.shape[1]):
        filled[:, row] = torch.where(grids[:, row] < 0, filled[:, row - 1], grids[:, row])
    return filled


def preview_picture(
    pixels: Tensor,  # [B, height, width, 3] float 0..1, decoded from `without_holes(grids)`
    grids: Tensor,  # [B, rows, cols] int64, -1 where a cell is still open
    largest: int = 512,
) -> Image.Image:
    """The pictures side by side, open cells grey, small ones enlarged without blur."""
    pixels = pixels.float().cpu()
    return contact_sheet(torch.where(open_pixels(grids, pixels.shape[1:3]), GREY, pixels), largest)


def open_pixels(grids: Tensor, size: Sequence[int]) -> Tensor:
    """Where a picture of (height, width) shows cells that are still open: [B, height, width, 1] bool."""
    open_cells = (grids < 0).float()[:, None]  # [B, 1, rows, cols]
    mask = torch.nn.functional.interpolate(open_cells, size=tuple(size), mode="nearest")
    return mask[:, 0, :, :, None] > 0


def contact_sheet(pixels: Tensor, largest: int) -> Image.Image:
    """[B, height, width, 3] float 0..1 -> one picture no larger than `largest`, as square as may be."""
    batch, height, width, _ = pixels.shape
    columns = math.ceil(math.sqrt(batch))
    lines = math.ceil(batch / columns)
    sheet = np.full((lines * height, columns * width, 3), round(GREY * 255), np.uint8)
    for index, picture in enumerate((pixels.clamp(0, 1) * 255).round().to(torch.uint8).numpy()):
        top, left = index // columns * height, index % columns * width
        sheet[top : top + height, left : left + width] = picture
    image = Image.fromarray(sheet)
    factor = min(CRISP_SIDE, largest) // max(image.size)
    if factor > 1:
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    if max(image.size) > largest:
        image.thumbnail((largest, largest))
    return image
