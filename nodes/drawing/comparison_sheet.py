"""The contact sheet of a comparison: one card a decoder, with its picture and its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from .canvas import BRIGHT, CARD, FAINT, SOFT, TRACK, Canvas

SIDE, GAP, PAD = 336, 16, 12  # of a picture, between cards, inside a card
LARGEST = 1.5  # times that size, for large pictures
TITLE, FIGURE, WORDS, SMALL, TINY = 25, 46, 22, 18, 15  # sizes of text
CARD_TEXT = 244  # height of a card below its picture
MOST_LINES = 2  # of the prompt and of a decoder's settings
HEADLINE = "speed-up over AR"


@dataclass(frozen=True)
class SheetCell:
    """One decoder on the sheet. What is not known yet is None or empty."""

    name: str
    settings: str
    promise: str
    colour: str
    picture: Image.Image | None = None
    headline: str = ""  # large, such as 4.8x
    figures: tuple[str, ...] = ()  # a line each, three at most
    note: str = ""
    share: float | None = None  # of the slowest decoder's seconds, 0 to 1


def comparison_sheet(
    cells: Sequence[SheetCell], title: str, lines: Sequence[str], aspect: float, picture_side: int
) -> Image.Image:
    """title: the prompt. lines: what is the same for all. aspect: height of a picture over its width.
    picture_side: of the pictures, in pixels: the sheet is drawn larger for large ones."""
    columns = len(cells) if len(cells) <= 3 else math.ceil(math.sqrt(len(cells)))
    width = GAP + columns * (SIDE + 2 * PAD + GAP)
    scale = min(max(picture_side / SIDE, 1.0), LARGEST)
    measure = Canvas(1, 1, scale)
    heading = measure.wrapped(title, TITLE, width - 2 * GAP, MOST_LINES)
    small = [part for line in lines for part in measure.wrapped(line, SMALL, width - 2 * GAP, MOST_LINES)]
    top = GAP + 32 * len(heading) + 25 * len(small) + 8
    picture_height = SIDE * min(max(aspect, 0.4), 2.5)
    card_height = PAD + picture_height + CARD_TEXT
    rows = math.ceil(len(cells) / columns)
    canvas = Canvas(width, top + rows * (card_height + GAP), scale)
    for number, line in enumerate(heading):
        canvas.text((GAP + 2, GAP + 24 + 32 * number), line, TITLE)
    for number, line in enumerate(small):
        canvas.text((GAP + 2, GAP + 32 * len(heading) + 19 + 25 * number), line, SMALL, FAINT)
    for number, cell in enumerate(cells):
        left = GAP + number % columns * (SIDE + 2 * PAD + GAP)
        draw_card(canvas, cell, left, top + number // columns * (card_height + GAP), picture_height)
    return canvas.finish()


def draw_card(canvas: Canvas, cell: SheetCell, left: float, top: float, picture_height: float) -> None:
    right, inner = left + SIDE + 2 * PAD, left + PAD
    below = top + PAD + picture_height
    canvas.rectangle((left, top, right, below + CARD_TEXT), CARD, radius=10)
    place = (inner, top + PAD, right - PAD, below)
    if cell.picture is None:
        canvas.rectangle(place, TRACK, radius=4)
    else:
        canvas.picture(cell.picture, place)
    canvas.rectangle((inner, below + 9, right - PAD, below + 15), TRACK, radius=3)
    if cell.share is not None:
        end = inner + max(6.0, cell.share * SIDE)
        canvas.rectangle((inner, below + 9, end, below + 15), cell.colour, radius=3)

    canvas.text((inner, below + 47), canvas.shortened(cell.name, TITLE, SIDE), TITLE)
    dot = below + 68
    canvas.rectangle((inner, dot - 6, inner + 12, dot + 6), cell.colour, radius=6)
    canvas.text((inner + 20, dot + 7), cell.promise, WORDS, cell.colour)
    settings = canvas.wrapped(cell.settings, SMALL, SIDE, MOST_LINES)
    for number, line in enumerate(settings):
        canvas.text((inner, below + 100 + 21 * number), line, SMALL, FAINT)
    for number, line in enumerate(cell.figures):
        canvas.text((inner, below + 152 + 26 * number), canvas.shortened(line, WORDS, 190), WORDS, SOFT)
    if cell.headline:
        canvas.text((right - PAD, below + 182), cell.headline, FIGURE, BRIGHT, align=1)
        canvas.text((right - PAD, below + 204), HEADLINE, TINY, FAINT, align=1)
    canvas.text((inner, below + 232), canvas.shortened(cell.note, SMALL, SIDE), SMALL, cell.colour)
