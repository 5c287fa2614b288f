"""The pictures on the templates' cards, and whether a run gives what one shows."""

from __future__ import annotations

import numpy as np
from PIL import Image

from ...tools.comfy_server import ROOT

SIDE = 48  # pixels that are compared: scaling and JPEG hardly change them
# Mean difference of a channel, 0 to 255. Measured: 0.5 to 3.1 for the own picture of 8 templates, 10 and more
# for cards of other pictures.
ALIKE = 6.0


def card_of(template: str) -> Image.Image:
    return Image.open(ROOT / "workflows" / f"{template}.jpg").convert("RGB")


def difference(one: Image.Image, other: Image.Image) -> float:
    small = [
        np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX), dtype=float)
        for image in (one, other)
    ]
    return float(np.abs(small[0] - small[1]).mean())
