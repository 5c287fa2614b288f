"""Pictures in rows, each row under a line of text: the README's sheets."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

SIDE, GAP, LABEL = 112, 8, 28
DARK, LIGHT = "#202124", "#e8eaed"


def labelled_rows(rows: Sequence[tuple[str, Sequence[Image.Image]]]) -> Image.Image:
    """RGB, light text on dark; pictures are scaled to SIDE."""
    across = max(len(pictures) for _, pictures in rows)
    sheet = Image.new("RGB", ((SIDE + GAP) * across + GAP, (SIDE + LABEL + GAP) * len(rows) + GAP), DARK)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=15)
    for number, (text, pictures) in enumerate(rows):
        top = GAP + number * (SIDE + LABEL + GAP)
        draw.text((GAP, top + 4), text, font=font, fill=LIGHT)
        for column, picture in enumerate(pictures):
            small = picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            sheet.paste(small, (GAP + column * (SIDE + GAP), top + LABEL))
    return sheet
