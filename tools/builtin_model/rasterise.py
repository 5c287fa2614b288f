"""SVG text to square pixels, by resvg (pip install -r tools/builtin_model/requirements.txt)."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from ..problem import Problem


def rasterise(svg: str, side: int) -> np.ndarray:
    """[side, side, 3] uint8, on white, centred, proportions kept."""
    try:
        import resvg_py
    except ImportError as error:
        raise Problem(
            "resvg_py is not installed", "pip install -r tools/builtin_model/requirements.txt"
        ) from error
    # Twice the size and halved: thin lines come out closer to their true weight.
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=2 * side, background="white"))
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.thumbnail((2 * side, 2 * side), Image.Resampling.LANCZOS)
    square = Image.new("RGB", (2 * side, 2 * side), "white")
    square.paste(picture, ((2 * side - picture.width) // 2, (2 * side - picture.height) // 2))
    return np.asarray(square.resize((side, side), Image.Resampling.BOX))
