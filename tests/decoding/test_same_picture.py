"""Same picture: matching decoders give step-by-step decoding's tokens, whatever the window, the batch and the
drafts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    INITIALISERS,
    Decoder,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    greedy_jacobi,
    image_seeds,
    run_to_end,
    same_picture,
    sjd,
)
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.redrafters import Draw, FreshDraw, MaximalCoupling, Redrafter, RedraftLaw, TargetLaw
from jacobi_ar.decoding.schedules import RasterWindow
from jacobi_ar.decoding.verifiers import SharedNoiseMatch
from torch import Tensor

from .toy import ToyTarget

# Two codes; structure tokens take the ids behind them.
GRIDS = [
    TokenGrid(2, 4),
    TokenGrid(4, 2, row_end=(2,)),
    TokenGrid(2, 3, row_end=(2, 3)),
    TokenGrid(1, 7),
    TokenGrid(7, 1),
]


def tokens_of(
    decoder: Decoder,
    seeds: list[int],
    grid: TokenGrid = GRIDS[0],
    sampling: SamplingSettings | None = None,
    kept: Tensor | None = None,
) -> Tensor:
    target = ToyTarget(grid, vocabulary=2, seed=5)
    return run_to_end(
        decode(target, [None] * len(seeds), decoder, sampling or SamplingSettings(), seeds, kept)
    ).tokens


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("window", [1, 2, 3, 7, 31])
@pytest.mark.parametrize("fixed_shapes", [False, True])
def test_every_window_gives_the_step_by_step_picture(
    grid: TokenGrid, window: int, fixed_shapes: bool
) -> None:
    seeds = image_seeds(7, 40)
    assert torch.equal(
        tokens_of(same_picture(window, "uniform", fixed_shapes), seeds, grid),
        tokens_of(autoregressive(), seeds, grid),
    )


@pytest.mark.parametrize("initialiser", INITIALISERS)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_every_start_works_on_every_grid(initialiser: str, grid: TokenGrid) -> None:
    seeds = image_seeds(2, 20)
    for window in (2, 9):
        ours = tokens_of(same_picture(window, initialiser), seeds, grid)
        assert torch.equal(ours, tokens_of(autoregressive(), seeds, grid))


@pytest.mark.parametrize("initialiser", INITIALISERS)
@pytest.mark.parametrize("draw", [FreshDraw(), MaximalCoupling()], ids=lambda part: part.name)
@pytest.mark.parametrize("law", [TargetLaw(), VerificationPrediction(1)], ids=lambda part: part.name)
def test_any_draft_will_do(initialiser: str, draw: Draw, law: RedraftLaw) -> None:
    parts = INITIALISERS[initialiser], SharedNoiseMatch(), Redrafter(law, draw)
    decoder, seeds = Decoder("any", RasterWindow(3), *parts), image_seeds(1, 60)
    assert torch.equal(tokens_of(decoder, seeds), tokens_of(autoregressive(), seeds))


def test_padded_step_by_step_decoding_is_step_by_step_decoding() -> None:
    seeds = image_seeds(3, 30)
    assert torch.equal(tokens_of(autoregressive(5), seeds), tokens_of(autoregressive(), seeds))


@pytest.mark.parametrize(
    "decoder",
    [autoregressive(), same_picture(3), sjd(3), sjd(3, "uniform", "maximal coupling")],
    ids=lambda d: d.describe(),
)
def test_an_image_of_a_batch_is_the_image_made_alone(decoder: Decoder) -> None:
    together = tokens_of(decoder, image_seeds(2**64 - 2, 5))  # seeds wrap around
    for i, seed in enumerate([2**64 - 2, 2**64 - 1, 0, 1, 2]):
        assert torch.equal(together[i], tokens_of(decoder, [seed])[0])


@pytest.mark.parametrize("decoder", [autoregressive(), same_picture(3), sjd(3)], ids=lambda d: d.name)
def test_every_bit_of_the_seed_matters(decoder: Decoder) -> None:
    grid = TokenGrid(3, 4)
    seeds = [0, *(1 << bit for bit in range(64))]
    pictures = tokens_of(decoder, seeds, grid).view(65, -1)
    # 65 draws from about 2^12 pictures: some coincide by chance, but no more than few.
    assert len({tuple(p) for p in pictures.tolist()}) > 50


@pytest.mark.parametrize("window", [1, 3, 8])
def test_greedy_jacobi_is_greedy_decoding(window: int) -> None:
    for grid in GRIDS:
        greedy = tokens_of(autoregressive(), [1, 2], grid, SamplingSettings(temperature=0.0))
        assert torch.equal(tokens_of(greedy_jacobi(window), [1, 2], grid), greedy)
        assert torch.equal(tokens_of(sjd(window), [1, 2], grid, SamplingSettings(temperature=0.0)), greedy)


@pytest.mark.parametrize("decoder", [autoregressive(), same_picture(3), sjd(3)], ids=lambda d: d.name)
@pytest.mark.parametrize("grid", GRIDS[:3], ids=str)
def test_kept_tokens_stay_and_the_rest_follows_them(decoder: Decoder, grid: TokenGrid) -> None:
    seeds = image_seeds(11, 20)
    whole = tokens_of(autoregressive(), seeds, grid)
    upper = whole.clone()
    upper[:, grid.rows // 2 :] = -1
    again = tokens_of(decoder, seeds, grid, kept=upper)
    assert torch.equal(again[:, : grid.rows // 2], whole[:, : grid.rows // 2])
    if decoder.verifier.name == "shared-noise match":
        assert torch.equal(again, whole)


def test_kept_cells_anywhere_are_fed_as_they_are() -> None:
    grid, seeds = TokenGrid(2, 4), image_seeds(4, 50)
    kept = torch.full((50, 2, 4), -1)
    kept[:, 0, 1:3], kept[:, 1, 3], kept[::2, 0, 0] = 1, 0, 1
    reference = tokens_of(autoregressive(), seeds, grid, kept=kept)
    assert torch.equal(torch.where(kept >= 0, reference, -1), kept)
    for window in (1, 2, 5):
        assert torch.equal(tokens_of(same_picture(window), seeds, grid, kept=kept), reference)
    all_kept = reference.clone()
    assert torch.equal(tokens_of(same_picture(2), seeds, grid, kept=all_kept), all_kept)


@dataclass
class Counted:
    passes: list[int]
    filled: list[list[int]]


def test_reports_are_monotone_and_end_full() -> None:
    grid = TokenGrid(2, 4)
    target = ToyTarget(grid, vocabulary=2)
    seen = Counted([], [])
    for report in decode(target, [None] * 3, sjd(3), SamplingSettings(), [1, 2, 3]):
        seen.passes.append(report.passes)
        seen.filled.append(report.filled)
        grids = report.grids()
        assert (grids.view(3, -1) >= 0).sum(1).tolist() == report.filled
    assert seen.passes == list(range(1, len(seen.passes) + 1))
    assert seen.filled[-1] == [8, 8, 8] and report.total == 24
    assert all(b >= a for a, b in zip(seen.filled, seen.filled[1:], strict=False))
    result = report.result
    assert result is not None and torch.equal(result.tokens, grids)
    trace = result.trace
    assert trace.passes == target.forwards == seen.passes[-1] == max(trace.passes_of)
    assert trace.step_of.min() == 1 and (np.diff(trace.step_of.reshape(3, -1), axis=1) >= 0).all()
    for image in range(3):  # every pass of an image fixes its accepted drafts and one token more
        committed = sum(step[image] + 1 for step in trace.accepted if step[image] >= 0)
        assert 8 <= committed <= 9


def test_step_by_step_decoding_needs_one_pass_a_token() -> None:
    for grid in GRIDS:
        target = ToyTarget(grid, vocabulary=2)
        trace = run_to_end(decode(target, [None], autoregressive(), SamplingSettings(), [0])).trace
        assert trace.passes == target.forwards == grid.cells == trace.autoregressive_passes
        assert trace.step_compression == 1.0


def test_no_global_random_state_is_touched() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()
    tokens_of(sjd(3), [5]), tokens_of(same_picture(3), [5])
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))
