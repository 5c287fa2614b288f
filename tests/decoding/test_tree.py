"""Trees of drafts: the promises over them, broken variants that must fail, what is refused.

See Note [Seeded law tests] in chi_square.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from jacobi_ar.decoding import (
    DRAWS,
    INITIALISERS,
    Decoder,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    image_seeds,
    run_to_end,
    same_picture,
    same_picture_tree,
    schedules,
    sjd,
    sjd_tree,
    tree_run,
    with_prediction,
)
from jacobi_ar.decoding.branches import Candidates, without_replacement
from jacobi_ar.decoding.drafts import Drafts, History
from jacobi_ar.decoding.draws import inverse_cdf, residual
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.redrafters import FreshDraw, MaximalCoupling, Redrafter, TargetLaw
from jacobi_ar.decoding.step import Step
from jacobi_ar.decoding.tree_verifiers import TreeTest
from torch import Tensor

from .chi_square import FAILS_BELOW, PASSES_ABOVE
from .test_same_distribution import LINED, law_p
from .test_same_picture import GRIDS
from .toy_tree import ToyTree

# --- Same distribution ---


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("initialiser", INITIALISERS)
def test_sjd_tree_has_the_joint_law(initialiser: str, draw: str) -> None:
    decoder = sjd_tree(4, 2, 2, initialiser, draw)
    assert law_p(decoder, 12_000, 3_000, toy=ToyTree) > PASSES_ABOVE


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("batch", [1, 4])
def test_sjd_tree_has_the_joint_law_in_small_batches(batch: int, draw: str) -> None:
    decoder = sjd_tree(4, 2, 2, "uniform", draw)
    assert law_p(decoder, 800 if batch == 1 else 2_400, batch, toy=ToyTree) > PASSES_ABOVE


@pytest.mark.parametrize(("siblings", "depth"), [(3, 1), (2, 3), (3, 3), (4, 2)])
@pytest.mark.parametrize("draw", DRAWS)
def test_sjd_tree_of_any_shape_has_the_joint_law(siblings: int, depth: int, draw: str) -> None:
    """Three codes: with three siblings a column is exhausted, four are more than there are."""
    decoder = sjd_tree(5, siblings, depth, "copy left", draw)
    assert law_p(decoder, 9_000, 3_000, toy=ToyTree) > PASSES_ABOVE


@pytest.mark.parametrize("draw", DRAWS)
def test_sjd_tree_has_the_joint_law_across_structure_tokens(draw: str) -> None:
    for depth in (1, 3):
        decoder = sjd_tree(3, 2, depth, "copy above", draw)
        assert law_p(decoder, 9_000, 3_000, LINED, toy=ToyTree) > PASSES_ABOVE


@pytest.mark.parametrize(
    "sampling", [SamplingSettings(0.7), SamplingSettings(top_k=2), SamplingSettings(1.3, 0, 0.8)], ids=str
)
@pytest.mark.parametrize("draw", DRAWS)
def test_sjd_tree_has_the_joint_law_under_the_sampling_chain(sampling: SamplingSettings, draw: str) -> None:
    """Top-k 2 leaves no third sibling where laws are the model's."""
    decoder = sjd_tree(4, 3, 2, "uniform", draw)
    assert law_p(decoder, 9_000, 3_000, sampling=sampling, toy=ToyTree) > PASSES_ABOVE


@pytest.mark.parametrize("draw", DRAWS)
def test_sjd_tree_with_prediction_has_the_joint_law(draw: str) -> None:
    decoder = with_prediction(sjd_tree(4, 2, 2, "uniform", draw), growth=1)
    assert decoder.promise is Promise.SAME_DISTRIBUTION
    assert law_p(decoder, 24_000, 6_000, toy=ToyTree) > PASSES_ABOVE


# --- Broken the ways that public code is, or easily would be ---


@dataclass(frozen=True)
class RemembersTheResidual(Redrafter):
    """Redrafts that carry along what their law gained since the last step, for siblings drawn from it."""

    def redraft(self, step: Step) -> Drafts:
        redrafts = super().redraft(step)
        gained = redrafts.laws.clone()
        gained[:, : step.width] = residual(redrafts.laws[:, : step.width], step.drafts.laws)
        age = torch.ones(gained.shape[:2], dtype=torch.int64)
        return replace(redrafts, history=History(gained[:, :, None], age))


def siblings_from_the_residual(drafts: Drafts, uniforms: Tensor) -> Candidates:
    """The released code of SJD-PAC: siblings come from max(q - p, 0)."""
    assert drafts.history is not None
    gained = torch.where((drafts.history.age > 0)[..., None], drafts.history.laws[:, :, 0], drafts.laws)
    return without_replacement(replace(drafts, laws=gained), uniforms)


def siblings_with_replacement(drafts: Drafts, uniforms: Tensor) -> Candidates:
    others = [inverse_cdf(drafts.laws, number) for number in uniforms.unbind(-1)]
    tokens = torch.stack([drafts.tokens, *others], -1)
    return Candidates(tokens, torch.ones_like(tokens, dtype=torch.bool))


class LawKeptAfterRemoval(TreeTest):
    """The next sibling is tested against the law of the first."""

    @staticmethod
    def without(law: Tensor, token: Tensor) -> Tensor:
        return law


class LawNotRenormalised(TreeTest):
    """The first candidate is taken out of the law, which then sums to less than 1."""

    @staticmethod
    def without(law: Tensor, token: Tensor) -> Tensor:
        return law.scatter(-1, token[:, None], 0.0)


# A certain start: with a uniform one the first residual is the new law nearly as a whole.
SOUND = sjd_tree(4, 3, 2, "copy left", "maximal coupling")
BROKEN: dict[str, tuple[Decoder, Callable[[Drafts, Tensor], Candidates]]] = {
    "siblings from the residual": (
        replace(SOUND, redrafter=RemembersTheResidual(TargetLaw(), MaximalCoupling())),
        siblings_from_the_residual,
    ),
    "siblings drawn with replacement": (SOUND, siblings_with_replacement),
    "law not renormalised": (replace(SOUND, verifier=LawNotRenormalised()), without_replacement),
    "law kept": (replace(SOUND, verifier=LawKeptAfterRemoval()), without_replacement),
}


@pytest.mark.parametrize("variant", BROKEN)
def test_broken_trees_are_caught(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, siblings = BROKEN[variant]
    monkeypatch.setattr(tree_run, "without_replacement", siblings)
    assert law_p(decoder, 36_000, 6_000, toy=ToyTree) < FAILS_BELOW


# --- Same picture ---


def tokens_of(
    decoder: Decoder, seeds: list[int], grid: TokenGrid, kept: Tensor | None = None, vocabulary: int = 2
) -> Tensor:
    target = ToyTree(grid, vocabulary, seed=5)
    reports = decode(target, [None] * len(seeds), decoder, SamplingSettings(), seeds, kept)
    return run_to_end(reports).tokens


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize(("window", "siblings", "depth"), [(1, 2, 1), (3, 2, 2), (7, 2, 3), (5, 3, 2)])
def test_every_tree_gives_the_step_by_step_picture(
    grid: TokenGrid, window: int, siblings: int, depth: int
) -> None:
    seeds = image_seeds(7, 40)
    ours = tokens_of(same_picture_tree(window, siblings, depth), seeds, grid)
    assert torch.equal(ours, tokens_of(autoregressive(), seeds, grid))


@pytest.mark.parametrize("initialiser", INITIALISERS)
@pytest.mark.parametrize("draw", [FreshDraw(), MaximalCoupling()], ids=lambda part: part.name)
@pytest.mark.parametrize("law", [TargetLaw(), VerificationPrediction(1)], ids=lambda part: part.name)
def test_any_siblings_will_do(initialiser: str, draw: FreshDraw, law: TargetLaw) -> None:
    decoder = replace(same_picture_tree(3, 2, 2, initialiser), redrafter=Redrafter(law, draw))
    assert decoder.promise is Promise.SAME_PICTURE
    grid, seeds = TokenGrid(1, 7), image_seeds(1, 60)
    assert torch.equal(
        tokens_of(decoder, seeds, grid, vocabulary=3), tokens_of(autoregressive(), seeds, grid, vocabulary=3)
    )


def test_kept_cells_inside_the_tree_are_fed_as_they_are() -> None:
    grid, seeds = TokenGrid(2, 4), image_seeds(4, 50)
    kept = torch.full((50, 2, 4), -1)
    kept[:, 0, 1:3], kept[:, 1, 3], kept[::2, 0, 0] = 1, 0, 1
    reference = tokens_of(autoregressive(), seeds, grid, kept)
    for depth in (1, 2, 3):
        assert torch.equal(tokens_of(same_picture_tree(4, 2, depth), seeds, grid, kept), reference)


@pytest.mark.parametrize(
    "decoder", [same_picture_tree(3), *(sjd_tree(3, 2, 2, "uniform", d) for d in DRAWS)], ids=lambda d: d.name
)
def test_an_image_of_a_batch_is_the_image_made_alone(decoder: Decoder) -> None:
    grid = TokenGrid(3, 2, row_end=(2,))
    together = tokens_of(decoder, image_seeds(2**64 - 2, 5), grid)
    for i, seed in enumerate([2**64 - 2, 2**64 - 1, 0, 1, 2]):
        assert torch.equal(together[i], tokens_of(decoder, [seed], grid)[0])


@pytest.mark.parametrize("draw", DRAWS)
def test_an_image_with_much_to_feed_first_takes_no_numbers_for_its_neighbours_tree(
    draw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five kept tokens, two a pass: for two passes the first image has no drafts, the second has a tree."""
    monkeypatch.setattr(schedules, "FEED_CHUNK", 2)
    grid, kept = TokenGrid(1, 8), torch.full((2, 1, 8), -1)
    kept[0, 0, :5] = torch.tensor([1, 0, 1, 1, 0])
    decoder = sjd_tree(4, 2, 2, "uniform", draw)
    for seed in range(0, 30, 2):
        together = tokens_of(decoder, [seed, seed + 1], grid, kept, vocabulary=3)
        alone = [tokens_of(decoder, [seed + i], grid, kept[i : i + 1], vocabulary=3)[0] for i in range(2)]
        assert torch.equal(together, torch.stack(alone))


def test_a_tree_takes_fewer_passes_and_branches_win() -> None:
    grid, seeds = TokenGrid(1, 7), image_seeds(1, 50)
    for plain, tree in (
        (same_picture(6, "uniform", False), same_picture_tree(6, 2, 2)),
        (sjd(6), sjd_tree(6, 2)),
    ):
        targets = [ToyTree(grid, 3, seed=5) for _ in range(2)]
        passes = [
            sum(run_to_end(decode(target, seeds, decoder, SamplingSettings(), seeds)).trace.passes_of)
            for target, decoder in zip(targets, (plain, tree), strict=True)
        ]
        assert passes[1] < 0.9 * passes[0]
        assert targets[0].moved == 0 and targets[1].moved > 10
