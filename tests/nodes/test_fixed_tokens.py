"""Which tokens stay: rows, masks, and what Generate Image Tokens makes of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from jacobi_ar.decoding import Promise, TokenGrid
from jacobi_ar.decoding.promises import promise_given
from jacobi_ar.model_loaders.errors import GridError
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.nodes.fixed_tokens import (
    below_row,
    fixed_shape,
    from_first,
    given_words,
    kept_for,
    masked_cells,
    only_picture,
    opened,
)
from jacobi_ar.nodes.picture_facts import ENCODED, PictureFacts
from jacobi_ar.nodes.tokenizer_identity import TokenizerIdentity
from jacobi_ar.nodes.values import TokenGridValue
from torch import Tensor

IDENTITY = TokenizerIdentity("vq", 100, "0123456789abcdef")


def grid(pictures: int = 1, rows: int = 3, cols: int = 4) -> TokenGridValue:
    tokens = torch.arange(pictures * rows * cols).view(pictures, rows, cols)
    return TokenGridValue(
        tokens, IDENTITY, tuple(PictureFacts(ENCODED, model=str(i)) for i in range(pictures))
    )


def test_rows_below_are_opened_and_the_source_stays() -> None:
    source = grid(2)
    kept = opened(source, below_row(source.tokens.shape, 1)).tokens
    assert torch.equal(kept[:, 0], source.tokens[:, 0]) and (kept[:, 1:] == -1).all()
    assert (source.tokens >= 0).all()
    assert (opened(source, below_row(source.tokens.shape, 0)).tokens == -1).all()


@pytest.mark.parametrize("rows", [3, 4, -1, 1.5])
def test_one_row_must_be_left_to_draw(rows: float) -> None:
    with pytest.raises(ValueError, match="rows must be a whole number from 0 to 2 .the picture has 3"):
        below_row(grid().tokens.shape, rows)


def test_one_picture_of_a_batch() -> None:
    one = only_picture(grid(3), 2)
    assert torch.equal(one.tokens, grid(3).tokens[1:2]) and one.facts[0].model == "1"
    assert only_picture(grid(3), 0).pictures == 3
    with pytest.raises(ValueError, match="picture must be a whole number from 0 to 3"):
        only_picture(grid(3), 4)


def mask(*boxes: tuple[int, int, int, int], size: tuple[int, int] = (30, 40)) -> Tensor:
    pixels = torch.zeros(1, *size)
    for top, left, bottom, right in boxes:
        pixels[0, top:bottom, left:right] = 1
    return pixels


SHAPE = torch.Size([1, 3, 4])


@pytest.mark.parametrize(
    ("pixels", "cells"),
    [
        (mask((0, 0, 1, 1)), [0]),  # one pixel is enough
        (mask((9, 9, 11, 11)), [0, 1, 4, 5]),  # a corner of four
        (mask((10, 10, 20, 20)), [5]),  # exactly one cell
        (mask((0, 0, 30, 40)), list(range(12))),
        (mask((50, 100, 51, 101), size=(90, 120)), [7]),  # larger than the picture
        (torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]), [2, 3, 6, 7]),  # smaller than the grid
        (mask((0, 0, 1, 1))[0], [0]),  # without the batch
    ],
)
def test_a_cell_that_the_mask_touches_is_masked(pixels: Tensor, cells: list[int]) -> None:
    assert masked_cells(pixels, SHAPE).flatten().nonzero().flatten().tolist() == cells


def test_a_faint_touch_is_none_and_masks_must_fit() -> None:
    with pytest.raises(ValueError, match="mask 1 of 1 is empty"):
        masked_cells(0.5 * mask((0, 0, 5, 5)), SHAPE)
    with pytest.raises(ValueError, match="mask 2 of 2 is empty"):
        masked_cells(torch.cat([mask((0, 0, 5, 5)), mask()]), torch.Size([2, 3, 4]))
    with pytest.raises(ValueError, match="2 masks for 3 pictures"):
        masked_cells(mask((0, 0, 5, 5)).repeat(2, 1, 1), torch.Size([3, 3, 4]))
    with pytest.raises(ValueError, match="mask holds values that are not numbers"):
        masked_cells(torch.where(mask((0, 0, 5, 5)) > 0, torch.nan, 1.0), SHAPE)
    with pytest.raises(ValueError, match="mask must be"):
        masked_cells(torch.zeros(2, 2, 2, 2), SHAPE)


def test_from_the_first_masked_token_on_is_exact_and_masked_cells_only_is_not() -> None:
    cells = masked_cells(mask((10, 10, 20, 20)), SHAPE)
    exact, holes = opened(grid(), from_first(cells)), opened(grid(), cells)
    assert (exact.tokens.flatten() >= 0).tolist() == [True] * 5 + [False] * 7
    assert int((holes.tokens < 0).sum()) == 1
    promises = [
        promise_given(Promise.SAME_DISTRIBUTION, (value.tokens.flatten(1) >= 0).numpy())
        for value in (exact, holes)
    ]
    assert promises == [Promise.SAME_DISTRIBUTION, Promise.APPROXIMATE]


def test_one_picture_serves_a_batch_and_others_must_match() -> None:
    fixed = opened(grid(), below_row(SHAPE, 1))
    assert kept_for(fixed, 5, (3, 4)).shape == (5, 3, 4)
    two = opened(grid(2), below_row(SHAPE, 1))
    assert torch.equal(kept_for(two, 2, (3, 4)), two.tokens)
    with pytest.raises(ValueError, match="2 pictures and batch_size is 1: set batch_size to 2"):
        kept_for(two, 1, (3, 4))
    with pytest.raises(ValueError, match="3 x 4 tokens, but rows and columns ask for 6 x 4"):
        kept_for(fixed, 1, (6, 4))
    with pytest.raises(ValueError, match="picture 1 of fixed_tokens is complete"):
        kept_for(grid(), 1, (3, 4))


@pytest.mark.parametrize("size", [(5, 5), (4, 6)])
def test_tokens_of_no_size_of_the_models_name_the_node_to_change(size: tuple[int, int]) -> None:
    grids = [TokenGrid(4, 4), TokenGrid(3, 4)]
    model = SimpleNamespace(name="a model", grids=grids)
    model.grid = lambda rows, cols: ImageModel.grid(model, rows, cols)
    with pytest.raises(GridError, match="these fixed_tokens .* 4 x 4, 3 x 4. .* in Encode Image to Tokens"):
        fixed_shape(model, grid(1, *size), 0, 0)
    assert fixed_shape(model, grid(1, *size), 4, 0) == (4, size[1])  # the widgets' matter: `kept_for` says it
    assert fixed_shape(model, grid(), 0, 0) == (3, 4)


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ([0, 0, 0, 0, -1, -1, -1, -1], "the first 4 of 8 tokens (1 row)"),
        ([0, 0, 0, -1, -1, -1, -1, -1], "the first 3 of 8 tokens"),
        ([0, -1, 0, 0, 0, 0, 0, 0], "7 of 8 tokens"),
        ([-1] * 8, ""),
    ],
)
def test_what_is_given_in_words(kept: list[int], words: str) -> None:
    assert given_words(torch.tensor(kept).view(2, 4)) == words
