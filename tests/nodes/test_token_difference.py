"""Compare Token Grids: numbers, words and the map."""

from __future__ import annotations

import numpy as np
from jacobi_ar.nodes.token_difference import TINT, GridDifference, difference_map, sheet, table
from PIL import Image


def difference(*cells: tuple[int, int]) -> GridDifference:
    differs = np.zeros((4, 4), bool)
    for cell in cells:
        differs[cell] = True
    return GridDifference(differs)


def test_the_first_difference_is_the_first_in_drawing_order() -> None:
    found = difference((2, 0), (1, 3), (3, 3))
    assert (found.count, found.first, found.equal_share) == (3, (2, 4), 13 / 16)
    assert found.words() == "3 of 16 tokens differ, first in row 2, column 4"
    assert difference().first is None and difference().words() == "all 16 tokens equal"


def test_the_table_has_a_line_for_each_picture_and_one_for_all() -> None:
    lines = table([difference(), difference((0, 1))]).splitlines()
    assert lines[2:] == [
        "| 1 | 100.0% | 0 | – |",
        "| 2 | 93.8% | 1 | row 1, column 2 |",
        "| all | 96.9% | 1 | 1 of 2 pictures equal |",
    ]


def test_the_map_tints_what_differs_and_dims_what_does_not() -> None:
    white = np.full((64, 64, 3), 255, np.uint8)
    drawn = difference_map(difference((1, 2), (3, 3)), white)
    equal, differs, first = drawn[8, 8], drawn[56, 56], drawn[16, 32]
    assert len(set(equal.tolist())) == 1 and equal[0] < 128
    assert differs[0] > differs[2] + 80 and abs(int(differs[0]) - TINT[0]) < 10
    assert (first == 255).all() and not (drawn[24, 40] == 255).all()  # a frame, not a filled cell
    assert (difference_map(difference(), white) == equal).all()


def test_a_sheet_for_any_proportions() -> None:
    for size in ((64, 64), (16, 128), (700, 350)):
        image = Image.new("RGB", size, "#4080c0")
        made = sheet(difference((0, 0)), image, image)
        assert made.width > 3 * made.height * size[0] / size[1] / 2 and made.getpixel(
            (20, made.height - 20)
        ) != (30, 31, 34)
