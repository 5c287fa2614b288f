"""Plots for a report: bars, a curve, a map with its colour scale. Each fills a box of a canvas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from .canvas import BLUE, CARD, FAINT, GREY, SOFT, TRACK, Box, Canvas

TITLE, TICK = 22, 16  # sizes of text
INSIDE = (62, 52, 22, 44)  # of a plot's card: room left, above, right and below of the axes
MAP_SCALE = 64  # room below a map for its colour scale
EMPTY_CELL = (72, 75, 81)
PICTURE_SHARE = 0.45  # of a picture's lightness in a map that lies over it


def colours(values: np.ndarray) -> np.ndarray:
    """0..1 -> [..., 3] uint8: violet, blue, green, yellow, lighter all the way.

    The cubehelix of D. Green, Bull. Astr. Soc. India 39, 289 (2011): it reads the same in grey.
    """
    light = 0.16 + 0.76 * np.clip(values, 0, 1)
    angle = 2 * math.pi * (0.22 - 0.7 * np.clip(values, 0, 1))
    strength = 1.6 * light * (1 - light) / 2
    cosine, sine = strength * np.cos(angle), strength * np.sin(angle)
    red = light - 0.14861 * cosine + 1.78277 * sine
    green = light - 0.29227 * cosine - 0.90649 * sine
    blue = light + 1.97294 * cosine
    return (np.stack([red, green, blue], -1).clip(0, 1) * 255).round().astype(np.uint8)


def card(canvas: Canvas, box: Box, title: str) -> None:
    canvas.rectangle(box, CARD, radius=10)
    canvas.text((box[0] + 16, box[1] + 33), canvas.shortened(title, TITLE, box[2] - box[0] - 32), TITLE)


def ticks(top: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to `top`, about so many."""
    rough = max(top, 1e-9) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    return [step * number for number in range(int(top / step + 1e-6) + 1)]


class Axes:
    """The inside of a plot's card: data to places, with grid lines and numbers."""

    def __init__(self, canvas: Canvas, box: Box, right: float, top: float, names: tuple[str, str]) -> None:
        card(canvas, box, names[1])
        self.left, self.top = box[0] + INSIDE[0], box[1] + INSIDE[1]
        self.right, self.bottom = box[2] - INSIDE[2], box[3] - INSIDE[3]
        self.most_x, self.most_y = right, top
        for value in ticks(top):
            y = self.y(value)
            canvas.line([(self.left, y), (self.right, y)], TRACK)
            canvas.text((self.left - 8, y + 6), f"{value:g}", TICK, FAINT, align=1)
        for value in ticks(right, 5):
            canvas.text((self.x(value), self.bottom + 21), f"{value:g}", TICK, FAINT, align=0.5)
        canvas.text((self.right, self.bottom + 38), names[0], TICK, FAINT, align=1)

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * value / self.most_x

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * value / self.most_y


def bars(canvas: Canvas, box: Box, values: Sequence[float], names: tuple[str, str], mean: str) -> None:
    """One bar a pass, and a dashed line at their mean. mean: how it is called."""
    axes = Axes(canvas, box, len(values), max(*values, 1) * 1.08, names)
    gap = 0.12 if len(values) <= 120 else 0.0
    for number, value in enumerate(values):
        place = axes.x(number + gap), axes.y(value), axes.x(number + 1 - gap), axes.bottom
        canvas.rectangle(place, BLUE, radius=2 if gap else 0)
    level = axes.y(sum(values) / len(values))
    canvas.dashed((axes.left, level), (axes.right, level), "#f1f3f4")
    canvas.text((axes.right, box[1] + 33), mean, TICK, SOFT, align=1)


def curve(canvas: Canvas, box: Box, values: Sequence[float], slope: float, names: tuple[str, str]) -> None:
    """A filled curve of percents from before the first pass on, and a straight line of `slope` percent a
    pass."""
    passes, start = len(values) - 1, values[0]
    axes = Axes(canvas, box, passes, 100, names)
    points = [(axes.x(number), axes.y(value)) for number, value in enumerate(values)]
    canvas.polygon([*points, (axes.right, axes.bottom), (axes.left, axes.bottom)], "#33435c")
    canvas.line(points, BLUE, 2.5)
    end = min(passes, (100 - start) / slope)
    canvas.dashed((axes.x(0), axes.y(start)), (axes.x(end), axes.y(start + end * slope)), GREY)
    canvas.text((axes.right, box[1] + 33), "dashed: one token a pass", TICK, SOFT, align=1)


def heat_map(
    canvas: Canvas,
    box: Box,
    values: np.ndarray,  # [rows, cols], NaN where there is none
    title: str,
    ends: tuple[float, float],
    picture: Image.Image | None,
) -> None:
    """A cell a token; over the picture where there is one. ends: the values of the darkest and lightest."""
    card(canvas, box, title)
    low, high = ends
    share = (values - low) / max(high - low, 1e-9)
    known = ~np.isnan(values)
    pixels = np.where(known[..., None], colours(np.where(known, share, 0)), np.uint8(EMPTY_CELL))
    image = Image.fromarray(pixels)
    if picture is not None:
        image = over(image, picture)
    canvas.picture(image, map_place(box))
    draw_scale(canvas, box, ends)


def map_place(box: Box) -> Box:
    return box[0] + 16, box[1] + INSIDE[1], box[2] - 16, box[3] - MAP_SCALE


def over(cells: Image.Image, picture: Image.Image) -> Image.Image:
    """The map's colours with the picture's lights and shadows."""
    base = picture.convert("L").convert("RGB")
    factor = max(1, math.ceil(384 / max(base.size)))
    base = base.resize((base.width * factor, base.height * factor), Image.Resampling.LANCZOS)
    return Image.blend(cells.resize(base.size, Image.Resampling.NEAREST), base, PICTURE_SHARE)


def draw_scale(canvas: Canvas, box: Box, ends: tuple[float, float]) -> None:
    left, right, top = box[0] + 16, box[2] - 16, box[3] - MAP_SCALE + 16
    ramp = Image.fromarray(colours(np.linspace(0, 1, 256))[None])
    canvas.stretched(ramp, (left, top, right, top + 12))
    canvas.text((left, top + 34), f"{ends[0]:g}", TICK, FAINT)
    canvas.text(((left + right) / 2, top + 34), f"{(ends[0] + ends[1]) / 2:.3g}", TICK, FAINT, align=0.5)
    canvas.text((right, top + 34), f"{ends[1]:.4g}", TICK, FAINT, align=1)
