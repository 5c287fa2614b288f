"""A handful of coloured shapes with names, in two styles: drawings that need no network and no rasteriser."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw

from .drawings import Drawing

COLOURS = {"red": "#d32f2f", "blue": "#1976d2", "green": "#388e3c", "yellow": "#fbc02d"}
SHAPES = ("circle", "square", "triangle")


def shapes(side: int) -> Iterator[tuple[Drawing, np.ndarray]]:
    """Drawings of `side` pixels: filled ones are flat, outlined ones noto and twemoji, stripes are flags."""
    for colour, value in COLOURS.items():
        for shape in SHAPES:
            for style, width in (("flat", 0), ("noto", 2), ("twemoji", 3)):
                words = (colour, shape)
                others = ((colour, "disc"),) if shape == "circle" else ()
                yield Drawing(style, words, others), _draw(shape, value, width, side)
        yield Drawing("flag", ("flag", colour)), _stripes(value, side)


def _draw(shape: str, colour: str, width: int, side: int) -> np.ndarray:
    picture = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(picture)
    box = (side // 8, side // 8, side - side // 8, side - side // 8)
    style = {"outline": colour, "width": width} if width else {"fill": colour}
    if shape == "circle":
        draw.ellipse(box, **style)
    elif shape == "square":
        draw.rectangle(box, **style)
    else:
        draw.polygon([(side // 2, box[1]), (box[0], box[3]), (box[2], box[3])], **style)
    return np.asarray(picture)


def _stripes(colour: str, side: int) -> np.ndarray:
    picture = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(picture)
    for top in range(0, side, side // 4):
        draw.rectangle((0, top, side, top + side // 8), fill=colour)
    return np.asarray(picture)
