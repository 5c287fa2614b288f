"""A small plot of a training run: one panel a figure, drawn with Pillow alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, MARGIN = 480, 150, 22


def plot(path: Path, series: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """`series` holds (step, value) points by name; panels without two points stay empty."""
    sheet = Image.new("RGB", (WIDTH, HEIGHT * max(1, len(series))), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=12)
    for row, (name, points) in enumerate(series.items()):
        top = row * HEIGHT
        last = f" {points[-1][1]:.3f} at step {points[-1][0]}" if points else ""
        draw.text((MARGIN, top + 4), name + last, fill="black", font=font)
        draw.rectangle((MARGIN, top + MARGIN, WIDTH - MARGIN, top + HEIGHT - MARGIN), outline="#cccccc")
        if len(points) < 2:
            continue
        low, high = min(value for _, value in points), max(value for _, value in points)
        span, end = (high - low) or 1.0, points[-1][0]
        draw.line(
            [
                (
                    MARGIN + (WIDTH - 2 * MARGIN) * step / end,
                    top + HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / span,
                )
                for step, value in points
            ],
            fill="#2166ac",
            width=2,
        )
        draw.text((MARGIN + 4, top + MARGIN + 2), f"{high:.3g}", fill="#888888", font=font)
        draw.text((MARGIN + 4, top + HEIGHT - MARGIN - 16), f"{low:.3g}", fill="#888888", font=font)
    sheet.save(path)
