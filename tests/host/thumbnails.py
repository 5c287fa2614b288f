"""The pictures on the templates' cards, and whether a run gives what one shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from ...tools.comfy_server import ROOT

SIDE = 48  # pixels that are compared: scaling and JPEG hardly change them
# Mean difference of a channel, 0 to 255. Measured: 0.5 to 3.1 for the own picture of 8 templates, 10 and more
# for cards of other pictures.
ALIKE = 6.0
WITH_SECONDS = ("compare", "report")  # they show how long the run took, so they never look the same


def card_of(template: str) -> Image.Image:
    return Image.open(ROOT / "workflows" / f"{template}.jpg").convert("RGB")


def sheet_of(pictures: Sequence[Image.Image]) -> Image.Image:
    """The pictures in rows on a white square, as on a card."""
    width, height = pictures[0].size
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    side = max(columns * width, rows * height)
    left, top = (side - columns * width) // 2, (side - rows * height) // 2
    sheet = Image.new("RGB", (side, side), "white")
    for index, picture in enumerate(pictures):
        sheet.paste(picture, (left + index % columns * width, top + index // columns * height))
    return sheet


def difference(one: Image.Image, other: Image.Image) -> float:
    small = [
        np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX), dtype=float)
        for image in (one, other)
    ]
    return float(np.abs(small[0] - small[1]).mean())
