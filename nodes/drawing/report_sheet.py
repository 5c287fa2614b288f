"""The report of one picture of a run: figures, tokens a pass, how the picture filled, and its maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from .canvas import BRIGHT, FAINT, SOFT, Canvas
from .plots import bars, card, curve, heat_map, map_place

GAP, WIDTH, PLOT = 16, 1280, 330  # between cards; of the sheet; height of the plots
TITLE, FIGURE, WORDS, SMALL = 27, 42, 19, 19
NOT_RECORDED = "not in this trace"


@dataclass(frozen=True)
class Report:
    """What one picture's report shows. Arrays are [rows, cols]."""

    title: str
    lines: tuple[str, ...]  # small, below the title
    figures: tuple[tuple[str, str], ...]  # large number and what it is
    fixed: Sequence[int]  # tokens fixed in each pass
    pass_of: np.ndarray  # the pass that fixed each token, NaN where it was given
    entropy: np.ndarray | None  # bits, NaN where the token was given
    most_entropy: float  # top of its scale
    picture: Image.Image | None = None


def report_sheet(report: Report) -> Image.Image:
    measure = Canvas(1, 1)
    lines = [part for line in report.lines for part in measure.wrapped(line, SMALL, WIDTH - 2 * GAP, 2)]
    plots = GAP + 44 + 27 * len(lines) + 92
    columns = 2 if report.picture is None else 3
    side = (WIDTH - GAP) / columns - GAP
    rows, cols = report.pass_of.shape
    map_height = (side - 32) * min(max(rows / cols, 0.4), 1.6 if columns == 3 else 1.0) + 116
    maps = plots + PLOT + GAP
    canvas = Canvas(WIDTH, maps + map_height + GAP)
    draw_heading(canvas, report, lines)

    half = (WIDTH - 3 * GAP) / 2
    mean = f"mean {sum(report.fixed) / len(report.fixed):.1f}"
    left, right = (GAP, plots, GAP + half, plots + PLOT), (2 * GAP + half, plots, WIDTH - GAP, plots + PLOT)
    bars(canvas, left, report.fixed, ("pass", "Tokens fixed in each pass"), mean)
    given = int(np.isnan(report.pass_of).sum())
    filled = 100 * (given + np.cumsum([0, *report.fixed])) / report.pass_of.size
    curve(canvas, right, filled.tolist(), 100 / report.pass_of.size, ("pass", "Picture filled, percent"))

    places = [
        (GAP + number * (side + GAP), maps, GAP + number * (side + GAP) + side, maps + map_height)
        for number in range(columns)
    ]
    if report.picture is not None:
        card(canvas, places[0], "Picture")
        canvas.picture(report.picture, map_place(places[0]))
    ends = (1, len(report.fixed))
    heat_map(canvas, places[-2], report.pass_of, "Pass that fixed each token", ends, report.picture)
    title = "Entropy when it was fixed, bits"
    if report.entropy is None:
        card(canvas, places[-1], title)
        middle = (places[-1][0] + places[-1][2]) / 2, maps + map_height / 2
        canvas.text(middle, NOT_RECORDED, SMALL, FAINT, align=0.5)
    else:
        heat_map(canvas, places[-1], report.entropy, title, (0, report.most_entropy), report.picture)
    return canvas.finish()


def draw_heading(canvas: Canvas, report: Report, lines: Sequence[str]) -> None:
    canvas.text((GAP + 2, GAP + 28), canvas.shortened(report.title, TITLE, WIDTH - 2 * GAP), TITLE)
    for number, line in enumerate(lines):
        canvas.text((GAP + 2, GAP + 60 + 27 * number), line, SMALL, SOFT)
    top = GAP + 44 + 27 * len(lines)
    step = (WIDTH - 2 * GAP) / len(report.figures)
    for number, (value, name) in enumerate(report.figures):
        canvas.text((GAP + 2 + number * step, top + 50), value, FIGURE, BRIGHT)
        canvas.text((GAP + 2 + number * step, top + 76), name, WORDS, FAINT)
