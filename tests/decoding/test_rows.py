"""Rows as lanes: what opens when, how far each row drafts, what each query sees; limits that must equal other
decoders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    image_seeds,
    pjd,
    run_to_end,
    same_picture_rows,
    sjd,
    with_prediction,
    with_semantics,
    zipar,
)
from jacobi_ar.decoding.lanes import ACCEPTED, FRONTIER, NOTHING, Lanes, Stream
from jacobi_ar.decoding.rows import RowParallel
from torch import Tensor

from .chi_square import FAILS_BELOW, PASSES_ABOVE
from .test_same_distribution import law_p
from .toy import ToyTarget

PLAIN, LINED = TokenGrid(3, 4), TokenGrid(3, 4, row_end=(9,))


def lanes_at(grid: TokenGrid, schedule: RowParallel, fixed: list[int]) -> tuple[Lanes, Stream]:
    """Lanes of one image whose open rows have `fixed` tokens each, from row 0 on, all fixed tokens cached."""
    stream = Stream(grid, np.full((1, grid.cells), -1))
    rows = [schedule._row(stream, 0, number) for number in range(len(fixed))]
    for row, count in zip(rows, fixed, strict=True):
        row.length += count
        row.cached = max(row.cached, row.length - 1) if count else row.cached
    return schedule._lanes(stream, {0: rows})[0], stream


def seen_slots(
    grid: TokenGrid, schedule: RowParallel, fixed: list[int]
) -> tuple[object, list[list[list[int]]]]:
    lanes, stream = lanes_at(grid, schedule, fixed)
    plan = schedule.plan(lanes, stream, schedule.cache_slots(stream))
    visible = schedule.visible(plan, lanes, torch.from_numpy(plan.slots))
    return plan, [[row.nonzero().flatten().tolist() for row in lane] for lane in visible]


def test_three_open_rows_draft_no_further_than_the_row_above_reaches() -> None:
    """Grid 3 x 6, window 4: 5, 3 and 1 tokens are fixed. Row 0 may draft its last token, row 1 5 - 3 - 1, row
    2 3 - 1 - 1."""
    lanes, stream = lanes_at(TokenGrid(3, 6), RowParallel(4, 2), [5, 3, 1])
    plan = RowParallel(4, 2).plan(lanes, stream, 64)
    assert plan.counts.tolist() == [1, 1, 1]
    lanes, stream = lanes_at(TokenGrid(3, 6), RowParallel(4, 2), [6, 2, 1])
    plan = RowParallel(4, 2).plan(lanes, stream, 64)
    assert plan.counts.tolist() == [0, 4, 0]  # the first row is done: the second is the frontier
    assert lanes.commits.tolist() == [NOTHING, FRONTIER, ACCEPTED]


def test_what_each_query_sees() -> None:
    """Grid 3 x 4 without row ends, rows with 3, 1 and 0 fixed tokens: positions 0-3, 4-7, 8-11; scratch from
    12 on."""
    schedule = RowParallel(2, 1)
    plan, seen = seen_slots(PLAIN, schedule, [3, 1, 0])
    assert plan.counts.tolist() == [1, 1, 0]
    # Row 0 feeds its last token (2) and a draft (3).
    assert plan.slots[0].tolist() == [2, 3]
    assert seen[0] == [[0, 1, 2], [0, 1, 2, 3]]
    # Row 1 feeds token 4 and draft 5; it sees what is fixed before it (0-2), not row 0's draft at 3.
    assert plan.slots[1].tolist() == [4, 5]
    assert seen[1] == [[0, 1, 2, 4], [0, 1, 2, 4, 5]]
    # Row 2 has no token: a starter in scratch at position 7, seen by nobody else, copies the newest token of
    # row 1.
    starter = int(plan.slots[2][0])
    assert starter >= 12 and plan.positions[2][0] == 7 and plan.sources[2][0] == 4
    assert seen[2][0] == [0, 1, 2, 4, starter]
    assert all(starter not in row for lane in seen[:2] for row in lane)


def test_a_row_end_token_starts_a_row_where_the_family_has_one() -> None:
    """Grid 3 x 4 with one row-end token: cells 0-3, row end 4, cells 5-8."""
    plan, seen = seen_slots(LINED, RowParallel(2, 1), [3, 0])
    assert plan.starters is not None and not plan.starters.any()
    assert plan.slots[1][0] == plan.positions[1][0] == 4
    assert seen[1][0] == [0, 1, 2, 4]  # its fixed tokens and itself, not the draft at 3
    assert plan.counts.tolist() == [1, 2]  # 3 - 0 - 1


def test_rows_open_at_the_threshold() -> None:
    schedule = RowParallel(2, 2)
    for fixed, rows in (([1], 1), ([2], 2), ([3, 1], 2), ([3, 2], 3)):
        lanes, stream = lanes_at(PLAIN, schedule, fixed)
        assert schedule.advance(lanes, stream)[0].per_image == rows


def tokens_of(decoder: Decoder, seeds: list[int], grid: TokenGrid, kept: Tensor | None = None) -> Tensor:
    target = ToyRows(grid, vocabulary=2, seed=5)
    return run_to_end(decode(target, [None] * len(seeds), decoder, SamplingSettings(), seeds, kept)).tokens


class ToyRows(ToyTarget):
    """A toy that answers with gaps in the prefix too: a slot that is not seen is one more symbol."""

    def __init__(self, grid: TokenGrid, vocabulary: int, seed: int = 0) -> None:
        super().__init__(grid, vocabulary, seed)
        elsewhere = torch.randn(self.table.shape, generator=torch.Generator().manual_seed(seed + 1))
        self.table = torch.where(self.table.isnan(), elsewhere, self.table)


GRIDS = [TokenGrid(3, 3), TokenGrid(2, 4), TokenGrid(4, 2, row_end=(2,)), TokenGrid(1, 6), TokenGrid(6, 1)]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("threshold", [1, 2, 9])
def test_rows_that_only_draft_keep_the_picture(grid: TokenGrid, threshold: int) -> None:
    seeds = image_seeds(3, 30)
    for window in (1, 3):
        ours = tokens_of(same_picture_rows(window, threshold), seeds, grid)
        assert torch.equal(ours, tokens_of(autoregressive(), seeds, grid))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_zipar_with_a_whole_row_of_context_is_step_by_step_decoding(grid: TokenGrid) -> None:
    seeds = image_seeds(3, 30)
    assert torch.equal(tokens_of(zipar(grid.cols), seeds, grid), tokens_of(autoregressive(), seeds, grid))


def test_zipar_needs_columns_plus_threshold_a_row() -> None:
    grid = TokenGrid(3, 4)
    for threshold in (1, 2, 4):
        target = ToyRows(grid, vocabulary=2)
        trace = run_to_end(decode(target, [None], zipar(threshold), SamplingSettings(), [1])).trace
        # Row r + 1 opens when row r has its threshold-th token, and emits its first one pass later.
        assert trace.passes == 4 + 2 * threshold


@pytest.mark.parametrize(
    "decoder", [pjd(2, 1), pjd(3, 2), zipar(1), with_semantics(pjd(3, 1)), with_prediction(pjd(2, 1), 1)]
)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_every_row_decoder_fills_every_grid(decoder: Decoder, grid: TokenGrid) -> None:
    together = tokens_of(decoder, image_seeds(8, 6), grid)
    assert ((together >= 0) & (together < 2)).all()
    for i in range(0, 6, 2):
        assert torch.equal(tokens_of(decoder, [8 + i], grid)[0], together[i])


@pytest.mark.parametrize("grid", [TokenGrid(3, 3), TokenGrid(5, 2), TokenGrid(4, 2, row_end=(2,))], ids=str)
def test_kept_rows_stay_and_no_row_is_forgotten(grid: TokenGrid) -> None:
    seeds = image_seeds(2, 10)
    whole = tokens_of(autoregressive(), seeds, grid)
    masks = [torch.arange(grid.rows) < rows for rows in range(1, grid.rows + 1)]
    masks += [torch.arange(grid.rows) % 2 == 1, torch.arange(grid.rows) > 0]
    for mask in masks:
        kept = torch.where(mask[:, None], whole, -1)
        for decoder in (pjd(2, 1), zipar(1), same_picture_rows(2, 1), same_picture_rows(2, 99)):
            made = tokens_of(decoder, seeds, grid, kept)
            assert (made >= 0).all() and torch.equal(made[:, mask], whole[:, mask])
            if decoder.name == "Same-Picture Rows":
                assert torch.equal(made, tokens_of(autoregressive(), seeds, grid, kept))


def test_a_threshold_of_a_whole_row_keeps_the_joint_law() -> None:
    """See Note [Seeded law tests]."""
    assert law_p(pjd(3, 3), 16_000, 4_000) > PASSES_ABOVE


@pytest.mark.parametrize("draw", ["fresh", "maximal coupling", "shared noise"])
def test_rows_that_only_draft_keep_the_joint_law(draw: str) -> None:
    decoder = pjd(3, 1, "uniform", draw, only_draft=True)
    assert decoder.promise is Promise.SAME_DISTRIBUTION
    assert law_p(decoder, 16_000, 4_000, toy=ToyRows) > PASSES_ABOVE


@pytest.mark.parametrize("decoder", [pjd(2, 1), zipar(1)], ids=lambda d: d.name)
def test_row_decoders_are_rightly_called_approximate(decoder: Decoder) -> None:
    assert decoder.promise is Promise.APPROXIMATE
    assert law_p(decoder, 12_000, 4_000, toy=ToyRows) < FAILS_BELOW


def test_sjd_is_the_same_in_one_row_as_in_the_raster() -> None:
    grid, seeds = TokenGrid(1, 6), image_seeds(4, 40)
    assert torch.equal(tokens_of(pjd(3, 2), seeds, grid), tokens_of(sjd(3), seeds, grid))
