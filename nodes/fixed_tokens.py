"""Tokens that are given to Generate Image Tokens: which are kept, which are drawn, and what that promises."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model_loaders.errors import GridError
from ..model_loaders.image_model import ImageModel
from .inputs import whole_number
from .values import TokenGridValue

APPROXIMATE_NOTE = "kept tokens lie behind drawn ones: seams may show"


def only_picture(tokens: TokenGridValue, picture: int) -> TokenGridValue:
    """One picture of a batch, counted from 1; all for 0."""
    whole_number("picture", picture, 0, tokens.pictures, " (0: all of them)")
    if picture == 0:
        return tokens
    one = slice(picture - 1, picture)
    return TokenGridValue(tokens.tokens[one], tokens.tokenizer, tokens.facts[one])


def opened(tokens: TokenGridValue, cells: Tensor) -> TokenGridValue:
    """The same tokens with some cells to be drawn anew. cells: bool, broadcast to [B, rows, cols]."""
    return TokenGridValue(torch.where(cells, -1, tokens.tokens), tokens.tokenizer, tokens.facts)


def below_row(shape: torch.Size, row: int) -> Tensor:
    """The cells from this row on: [rows, 1] bool. shape: [B, rows, cols]."""
    whole_number("rows", row, 0, shape[1] - 1, f" (the picture has {shape[1]}: one must be left to draw)")
    return torch.arange(shape[1])[:, None] >= row


def masked_cells(
    mask: Tensor,  # [B or 1, height, width] float 0..1, 1 where to draw anew
    shape: torch.Size,  # [B, rows, cols]
) -> Tensor:
    """Cells that the mask touches, [B or 1, rows, cols] bool; ValueError where it touches none in a
    picture."""
    if mask.ndim == 2:
        mask = mask[None]
    if mask.ndim != 3 or not mask.numel():
        raise ValueError(f"mask must be [masks, height, width], got {tuple(mask.shape)}.")
    if mask.isnan().any():
        raise ValueError("mask holds values that are not numbers (NaN), so where to draw anew is not known.")
    if len(mask) not in (1, shape[0]):
        raise ValueError(f"there are {len(mask)} masks for {shape[0]} pictures: give one, or one a picture.")
    cells = F.adaptive_max_pool2d(mask.float()[:, None], tuple(shape[1:]))[:, 0] > 0.5
    empty = ~cells.flatten(1).any(1)
    if empty.any():
        raise ValueError(
            f"mask {int(empty.nonzero()[0]) + 1} of {len(mask)} is empty, so nothing would be drawn anew. "
            "Paint where the picture should change: right-click the Load Image node, Open in MaskEditor."
        )
    return cells


def from_first(
    cells: Tensor,  # [B, rows, cols] bool
) -> Tensor:
    """All cells from the first masked one on, in the order in which the model draws."""
    return cells.flatten(1).long().cummax(1).values.bool().view_as(cells)


def fixed_shape(model: ImageModel, fixed: TokenGridValue, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of the run: the fixed tokens' own where the widgets leave it open.

    GridError where these are none that the model makes.
    """
    own = fixed.tokens.shape[1], fixed.tokens.shape[2]
    if not (rows or columns):
        try:
            model.grid(*own)
        except GridError as error:
            source = "Choose rows and columns of such a size in Encode Image to Tokens"
            raise GridError(f"these fixed_tokens do not go: {error}. {source}.") from None
    return rows or own[0], columns or own[1]


def kept_for(tokens: TokenGridValue, batch: int, grid: tuple[int, int]) -> Tensor:
    """What `decode` keeps: [batch, rows, cols]. One picture serves all.

    ValueError where they are too many or few, of another size, or leave nothing to draw.
    """
    pictures, rows, cols = tokens.tokens.shape
    if (rows, cols) != grid:
        raise ValueError(
            f"fixed_tokens are {rows} x {cols} tokens, but rows and columns ask for {grid[0]} x {grid[1]}. "
            "Leave both at 0 to take the size of the fixed tokens."
        )
    if pictures not in (1, batch):
        raise ValueError(
            f"fixed_tokens hold {pictures} pictures and batch_size is {batch}: set batch_size to "
            f"{pictures}, or choose one picture in Keep Rows or Token Mask."
        )
    complete = (tokens.tokens >= 0).flatten(1).all(1)
    if complete.any():
        raise ValueError(
            f"picture {int(complete.nonzero()[0]) + 1} of fixed_tokens is complete, so nothing is left to "
            "draw. Put Keep Rows or Token Mask in between, to say what to draw anew."
        )
    return tokens.tokens.expand(batch, rows, cols)


def given_words(
    grid: Tensor,  # [rows, cols]
) -> str:
    """What is given of one picture, for example: the first 128 of 256 tokens."""
    given = (grid >= 0).flatten()
    count, cells = int(given.sum()), given.numel()
    if not count:
        return ""
    if not given[:count].all():
        return f"{count} of {cells} tokens"
    rows, rest = divmod(count, grid.shape[1])
    whole = f" ({rows} row{'s' if rows > 1 else ''})" if not rest else ""
    return f"the first {count} of {cells} tokens{whole}"
