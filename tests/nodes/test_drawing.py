"""What the analysis nodes draw: text that is legible in any script, sheets that hold what they should."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from jacobi_ar.nodes.drawing import fonts
from jacobi_ar.nodes.drawing.canvas import AMBER, BACKGROUND, CARD, GREEN, TRACK
from jacobi_ar.nodes.drawing.comparison_sheet import CARD_TEXT, GAP, PAD, SIDE, SheetCell, comparison_sheet
from jacobi_ar.nodes.drawing.plots import EMPTY_CELL, colours, ticks
from jacobi_ar.nodes.drawing.report_sheet import Report, report_sheet
from PIL import Image, ImageColor, ImageDraw

RED = (200, 10, 20)
LONG = "A decoder whose name nobody would read to its end " * 3


@pytest.fixture
def own_font_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a system without a single font."""
    monkeypatch.setattr(fonts, "SYSTEM_FONTS", ())
    fonts.font_with.cache_clear()
    yield
    fonts.font_with.cache_clear()


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n", "\x1c", "\x85", "\u2029", "\t"])
def test_a_text_of_several_lines_is_drawn_as_one(ends: str) -> None:
    """Some fonts refuse to draw a line's end."""
    text = f"red heart,{ends}white background"
    assert fonts.wrapped(text, 12, 1000, 3) == ["red heart, white background"]
    sheet = Image.new("RGB", (300, 30))
    fonts.draw_text(ImageDraw.Draw(sheet), (0, 20), fonts.shortened(text, 12, 280), 12, "white")
    assert sheet.getbbox() is not None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 16 x 16", "plain 16 x 16"),
        ("café – 4.8× naïve", "cafe - 4.8x naive"),
        ("🐙🦊 at sea", "(octopus)(fox face) at sea"),
        ("❤️", "(heavy black heart)"),
        ("赤い心", "(3 characters: CJK, HIRAGANA)"),
        ("Ёлка", "(4 characters: CYRILLIC)"),
    ],
)
def test_what_no_font_has_is_put_into_words(own_font_only: None, text: str, shown: str) -> None:
    assert fonts.legible(text) == shown


@pytest.mark.parametrize("text", ["one two three four five six seven eight nine", "x" * 300, "心" * 300])
def test_wrapped_lines_fit_and_are_not_more_than_asked_for(own_font_only: None, text: str) -> None:
    lines = fonts.wrapped(text, 20, 120, 3)
    assert 1 <= len(lines) <= 3
    assert all(fonts.length(line, 20) <= 120 for line in lines)


def test_what_has_room_is_not_changed() -> None:
    assert fonts.wrapped("red heart", 20, 400, 2) == ["red heart"]
    assert fonts.wrapped("", 20, 400, 2) == []
    words = "one two three four five six seven eight nine"
    assert " ".join(fonts.wrapped(words, 20, 120, 9)) == words


def test_a_very_long_prompt_is_cut_in_no_time() -> None:
    before = time.perf_counter()
    assert fonts.wrapped("a word " * 20_000, 20, 300, 2)[-1].endswith("…")
    assert time.perf_counter() - before < 2


def picture(colour: tuple[int, int, int] = RED, size: tuple[int, int] = (64, 64)) -> Image.Image:
    return Image.new("RGB", size, colour)


def cell(name: str = "SJD", **known: object) -> SheetCell:
    return SheetCell(name=name, settings="window 31", promise="approximate", colour=AMBER, **known)


def share_of(sheet: Image.Image, colour: str | tuple[int, int, int], box: tuple[float, ...]) -> float:
    """Of the pixels in the box."""
    wanted = ImageColor.getrgb(colour) if isinstance(colour, str) else colour
    return float((np.asarray(sheet.crop(box)) == wanted).all(-1).mean())


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (6, 3), (9, 3)])
def test_every_decoder_has_a_card_with_its_picture(count: int, columns: int) -> None:
    reds = [(20 * number + 10, 0, 0) for number in range(count)]
    cells = [cell(picture=picture(red)) for red in reds]
    sheet = comparison_sheet(cells, "octopus", ["seed 1"], 1.0, 64)
    card = SIDE + 2 * PAD + GAP
    assert sheet.width == GAP + columns * card
    found = dict((colour, number) for number, colour in sheet.getcolors(1 << 24))
    assert all(found[red] >= SIDE * SIDE for red in reds)


def bar(sheet: Image.Image) -> tuple[float, ...]:
    """The bar of the only card of a sheet."""
    bottom = sheet.height - GAP - CARD_TEXT
    return (GAP + PAD, bottom + 11, GAP + PAD + SIDE, bottom + 13)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_the_bar_is_as_long_as_the_seconds(share: float) -> None:
    sheet = comparison_sheet([cell(picture=picture(), share=share)], "", [], 1.0, 64)
    assert share_of(sheet, AMBER, bar(sheet)) == pytest.approx(share, abs=0.02)
    assert share_of(sheet, TRACK, bar(sheet)) == pytest.approx(1 - share, abs=0.02)


def test_figures_appear_and_an_open_card_stays_empty() -> None:
    known = {"headline": "4.8x", "figures": ("1.23 s", "53 passes", "4.8 tokens a pass"), "note": "all"}
    full = comparison_sheet([cell(**known)], "", [], 1.0, 64)
    empty = comparison_sheet([cell()], "", [], 1.0, 64)
    bottom = (GAP + PAD, full.height - GAP - 110, full.width - GAP - PAD, full.height - GAP - 4)
    assert share_of(empty, CARD, bottom) == 1.0
    assert 0.5 < share_of(full, CARD, bottom) < 0.95


def test_nothing_runs_out_of_its_card() -> None:
    known = {"headline": "12345.6x", "figures": (LONG, LONG, LONG), "note": LONG}
    long = SheetCell(LONG, LONG, "same distribution", GREEN, picture(), **known)
    sheet = comparison_sheet([long, long], LONG * 9, [LONG], 1.0, 64)
    top = sheet.height - GAP - SIDE - PAD - CARD_TEXT
    between = GAP + SIDE + 2 * PAD
    for left in (0, between, sheet.width - GAP):
        assert share_of(sheet, BACKGROUND, (left, top, left + GAP, sheet.height)) == 1.0


def test_large_pictures_get_a_larger_sheet_and_wide_ones_a_flatter_one() -> None:
    small, large = (comparison_sheet([cell()], "", [], 1.0, side) for side in (128, 512))
    assert large.width == pytest.approx(small.width * 1.5, abs=2)
    assert comparison_sheet([cell()], "", [], 0.5, 128).height < small.height - 0.4 * SIDE


def test_the_colours_grow_lighter_all_the_way() -> None:
    light = colours(np.linspace(0, 1, 64)).astype(float) @ [0.299, 0.587, 0.114]
    assert (np.diff(light) > 0).all() and light[-1] - light[0] > 150


@pytest.mark.parametrize("top", [1, 1.08, 7, 16, 100, 256, 2304, 0.3])
def test_ticks_are_few_and_round(top: float) -> None:
    found = ticks(top)
    assert found[0] == 0 and found[-1] <= top * 1.000001 and 2 <= len(found) <= 6


def report(rows: int = 4, cols: int = 4, **other: object) -> Report:
    pass_of = np.arange(1.0, rows * cols + 1).reshape(rows, cols)
    shown = {"entropy": pass_of / 10, "picture": None, "fixed": [1] * pass_of.size, **other}
    figures = (("3", "passes"), ("1.0", "tokens a pass"))
    return Report("a title", ("a line",), figures, pass_of=pass_of, most_entropy=2.0, **shown)


def test_a_map_has_the_colour_of_every_cell() -> None:
    sheet = report_sheet(report())
    found = dict((colour, number) for number, colour in sheet.getcolors(1 << 24))
    for colour in colours(np.arange(16) / 15):
        assert found.get(tuple(colour.tolist()), 0) > 1000


def test_given_tokens_are_grey_and_not_on_the_scale() -> None:
    pass_of = np.array([[np.nan, np.nan], [1.0, 2.0]])
    sheet = report_sheet(Report("", (), (("2", "passes"),), [1, 1], pass_of, None, 1.0))
    assert dict((colour, n) for n, colour in sheet.getcolors(1 << 24))[EMPTY_CELL] > 50_000


def test_a_map_over_a_picture_keeps_its_lights_and_shadows() -> None:
    white, black = (report_sheet(report(picture=picture(shade))) for shade in ((255,) * 3, (0,) * 3))
    difference = np.asarray(white).astype(int) - np.asarray(black).astype(int)
    assert (difference[-300:, -300:].max(-1) > 80).mean() > 0.4


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (48, 48), (8, 40), (40, 8)])
def test_reports_of_all_shapes(rows: int, cols: int) -> None:
    """All of a batch have one size: they travel as one image."""
    plain, pictured = report_sheet(report(rows, cols)), report_sheet(report(rows, cols, picture=picture()))
    assert plain.width == pictured.width == 1280
    assert plain.size == report_sheet(report(rows, cols, entropy=None)).size
