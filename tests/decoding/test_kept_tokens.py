"""Kept tokens: exactly the model's law of the rest where they come first, and said to be approximate
elsewhere.

See Note [Seeded law tests] in chi_square.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    DecodeResult,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    block_sjd,
    decode,
    image_seeds,
    run_to_end,
    same_picture,
    sjd,
    with_semantics,
)
from torch import Tensor

from .chi_square import FAILS_BELOW, PASSES_ABOVE, chi_square_p
from .toy import ToyTarget, picture_number

GRID = TokenGrid(2, 3)
LINED = TokenGrid(2, 2, row_end=(3,))
FIRST = [2, 0, -1, -1, -1, -1]
FIRST_ROW = [1, 2, -1, -1]
BEHIND = [-1, -1, 2, 0, -1, -1]
DECODERS = [autoregressive(), same_picture(3), sjd(3, "uniform", "maximal coupling"), block_sjd(3)]


def run(decoder: Decoder, kept: Tensor, grid: TokenGrid = GRID, first_seed: int = 1) -> DecodeResult:
    target, batch = ToyTarget(grid, vocabulary=3), len(kept)
    seeds = image_seeds(first_seed, batch)
    return run_to_end(decode(target, [None] * batch, decoder, SamplingSettings(), seeds, kept))


def grids(cells: list[int], batch: int, grid: TokenGrid = GRID) -> Tensor:
    return torch.tensor(cells).view(1, grid.rows, grid.cols).repeat(batch, 1, 1)


def law_p(decoder: Decoder, cells: list[int], grid: TokenGrid = GRID, images: int = 9_000) -> float:
    """p-value of pictures with these kept tokens under the model's law of pictures that have them."""
    made = run(decoder, grids(cells, images, grid), grid).tokens.view(images, -1).numpy()
    counts = np.bincount(picture_number(made, 3), minlength=3**grid.cells)
    law = ToyTarget(grid, vocabulary=3).joint_law(SamplingSettings())
    digits = np.arange(len(law))[:, None] // 3 ** np.arange(grid.cells - 1, -1, -1) % 3
    law[((digits != cells) & (np.array(cells) >= 0)).any(1)] = 0
    return chi_square_p(counts, law / law.sum())


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda d: d.name)
@pytest.mark.parametrize(("cells", "grid"), [(FIRST, GRID), (FIRST_ROW, LINED)], ids=["two tokens", "a row"])
def test_a_first_part_that_is_kept_gives_the_models_law_of_the_rest(
    decoder: Decoder, cells: list[int], grid: TokenGrid
) -> None:
    assert law_p(decoder, cells, grid) > PASSES_ABOVE


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda d: d.name)
def test_tokens_kept_behind_free_ones_do_not(decoder: Decoder) -> None:
    assert law_p(decoder, BEHIND) < FAILS_BELOW


@pytest.mark.parametrize("decoder", [*DECODERS, with_semantics(sjd(3))], ids=lambda d: d.name)
def test_the_promise_of_a_run_says_so(decoder: Decoder) -> None:
    assert run(decoder, grids(FIRST, 2)).trace.promise is decoder.promise
    assert run(decoder, grids([-1] * 6, 1)).trace.promise is decoder.promise
    assert run(decoder, grids([0] * 6, 1)).trace.promise is decoder.promise
    mixed = torch.cat([grids(FIRST, 2), grids(BEHIND, 1)])
    assert run(decoder, mixed).trace.promise is Promise.APPROXIMATE


@pytest.mark.parametrize(
    "cells", [FIRST, BEHIND, [-1] * 6, [1] * 5 + [-1], [0, -1, 0, -1, -1, 0], [0] * 6], ids=str
)
def test_same_picture_and_step_by_step_meet_whatever_is_kept(cells: list[int]) -> None:
    kept = grids(cells, 40)
    reference = run(autoregressive(), kept)
    for window in (1, 3, 8):
        assert torch.equal(run(same_picture(window), kept).tokens, reference.tokens)
    assert torch.equal(torch.where(kept >= 0, reference.tokens, -1), kept)


@pytest.mark.parametrize(
    "cells", [FIRST, BEHIND, [-1] * 6, [1] * 5 + [-1], [0, -1, 0, -1, -1, 0], [0] * 6], ids=str
)
def test_the_passes_of_step_by_step_decoding_are_known_without_running_it(cells: list[int]) -> None:
    kept = grids(cells, 3)
    reference = run(autoregressive(), kept).trace
    assert reference.autoregressive_passes == max(reference.passes_of) == reference.passes
    assert run(same_picture(3), kept).trace.autoregressive_passes == reference.passes
    assert reference.step_compression == 1.0


def test_images_of_a_batch_may_keep_different_parts() -> None:
    kept = torch.cat([grids(FIRST, 1), grids([-1] * 6, 1), grids(BEHIND, 1)])
    together = run(same_picture(3), kept, first_seed=5)
    assert together.trace.autoregressive_passes_of == [5, 6, 4]
    for i in range(3):
        alone = run(same_picture(3), kept[i : i + 1], first_seed=5 + i)
        assert torch.equal(alone.tokens[0], together.tokens[i])
