"""Previews: what an open cell looks like, how pictures are laid out, and how little time they may take."""

from __future__ import annotations

import torch
from jacobi_ar.nodes.previews import (
    PreviewBudget,
    contact_sheet,
    preview_picture,
    preview_words,
    without_holes,
)
from PIL import Image


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def blank() -> Image.Image:
    return Image.new("RGB", (1, 1))


def test_open_cells_take_the_token_above_and_nothing_is_changed_in_place() -> None:
    grids = torch.tensor([[[5, 6, 7], [8, -1, -1], [-1, -1, -1]]])
    before = grids.clone()
    assert without_holes(grids).tolist() == [[[5, 6, 7], [8, 6, 7], [8, 6, 7]]]
    assert torch.equal(grids, before)


def test_an_empty_grid_still_decodes() -> None:
    assert without_holes(torch.full((1, 2, 2), -1)).tolist() == [[[0, 0], [0, 0]]]


def test_open_cells_are_grey_and_the_picture_is_not_turned() -> None:
    """3 rows by 5 columns of 2 x 2 pixels: the open cell is the fourth of the second row."""
    grids = torch.ones(1, 3, 5, dtype=torch.int64)
    grids[0, 1, 3] = -1
    picture = preview_picture(torch.ones(1, 6, 10, 3), grids, largest=10)
    assert picture.size == (10, 6)
    grey = {(x, y) for x in range(10) for y in range(6) if picture.getpixel((x, y)) == (128, 128, 128)}
    assert grey == {(6, 2), (7, 2), (6, 3), (7, 3)}


def test_small_pictures_are_enlarged_by_whole_pixels_and_large_ones_fit() -> None:
    tiny = torch.zeros(1, 2, 2, 3)
    tiny[0, 0, 0] = 1.0
    sheet = contact_sheet(tiny, 512)
    assert sheet.size == (384, 384)
    assert sorted(color for _, color in sheet.getcolors()) == [(0, 0, 0), (255, 255, 255)]  # no blur
    assert max(contact_sheet(torch.zeros(1, 700, 300, 3), 512).size) == 512


def test_a_batch_is_laid_out_line_by_line() -> None:
    shades = torch.arange(3).view(3, 1, 1, 1).expand(3, 200, 200, 3) / 2
    sheet = contact_sheet(shades, 400)
    corners = [sheet.getpixel(at)[0] for at in ((0, 0), (200, 0), (0, 200), (200, 200))]
    assert corners == [0, 128, 255, 128]  # the fourth place is empty


def test_what_a_preview_leaves_out_is_said() -> None:
    assert preview_words(9) == "preview: 4 of 9 pictures"
    assert preview_words(1) == preview_words(4) == ""


def test_previews_wait_for_the_interval() -> None:
    clock = Clock()
    budget = PreviewBudget(interval=0.2, share=0.1, clock=clock)
    assert not budget.due()
    clock.now += 0.25
    assert budget.due()
    budget.draw(blank)
    assert not budget.due()


def test_dear_previews_stay_within_their_share_of_the_time() -> None:
    clock = Clock()
    budget = PreviewBudget(interval=0.2, share=0.1, clock=clock)

    def draw() -> Image.Image:
        clock.now += 1.0  # a decode on a slow machine
        return blank()

    while clock.now < 400.0:
        clock.now += 0.05  # a decoding step
        if budget.due():
            budget.draw(draw)
    assert 20 <= budget.spent <= 0.1 * (clock.now - 100.0) + 1.0
