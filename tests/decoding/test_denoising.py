"""SJD2: drafts that begin as noise leave the joint law and the picture as they are, and stop the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    DRAWS,
    DecodingError,
    NonFiniteLogits,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    block_sjd,
    decode,
    image_seeds,
    pjd,
    run_to_end,
    same_picture_denoising,
    sjd2,
    sjd_tree,
)
from jacobi_ar.decoding import loop as decoding_loop
from jacobi_ar.decoding.denoising import GaussianNoise, denoised, start_trajectories
from jacobi_ar.decoding.denoising_run import DenoisingRun
from jacobi_ar.decoding.drafts import Trajectories
from jacobi_ar.decoding.run import Run
from jacobi_ar.decoding.schedules import StepPlan
from jacobi_ar.decoding.step import Step

from .chi_square import FAILS_BELOW, PASSES_ABOVE
from .test_same_distribution import LINED, PLAIN, law_p
from .toy import ToyTarget
from .toy_denoiser import ToyDenoiser

SETTINGS = SamplingSettings()


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_joint_law_is_the_models(steps: int, draw: str) -> None:
    decoder = sjd2(4, steps, draw)
    assert decoder.promise is Promise.SAME_DISTRIBUTION
    assert law_p(decoder, 6_000, 6_000, toy=ToyDenoiser) > PASSES_ABOVE


def test_the_joint_law_is_the_models_in_small_batches() -> None:
    assert law_p(sjd2(4, 2, "maximal coupling"), 1_200, 4, toy=ToyDenoiser) > PASSES_ABOVE


def test_the_joint_law_is_the_models_across_structure_tokens() -> None:
    assert law_p(sjd2(3, 2), 6_000, 6_000, LINED, toy=ToyDenoiser) > PASSES_ABOVE


class UnderNoise(DenoisingRun):
    """Broken: a draft is tested by a law that was computed on noise."""

    def _make_step(self, logits: torch.Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        return Run._make_step(self, logits, plan, where)


def test_testing_under_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_loop, "DenoisingRun", UnderNoise)
    assert law_p(sjd2(4, 2), 6_000, 6_000, toy=ToyDenoiser) < FAILS_BELOW


@pytest.mark.parametrize("grid", [PLAIN, LINED, TokenGrid(3, 2)])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_same_picture_comes_out(grid: TokenGrid, steps: int) -> None:
    target, seeds = ToyDenoiser(grid, 3), image_seeds(5, 64)
    wanted = run_to_end(decode(target, [None] * 64, autoregressive(), SETTINGS, seeds)).tokens
    decoder = same_picture_denoising(4, steps)
    found = run_to_end(decode(target, [None] * 64, decoder, SETTINGS, seeds)).tokens
    assert target.noisy > 0
    assert torch.equal(found, wanted)


def test_a_picture_does_not_depend_on_its_batch() -> None:
    target, seeds, decoder = ToyDenoiser(PLAIN, 3), image_seeds(11, 6), sjd2(3, 2)
    together = run_to_end(decode(target, [None] * 6, decoder, SETTINGS, seeds)).tokens
    alone = [run_to_end(decode(target, [None], decoder, SETTINGS, [seed])).tokens for seed in seeds]
    assert torch.equal(together, torch.cat(alone))


def test_kept_tokens_are_never_under_noise() -> None:
    grid = TokenGrid(2, 4)
    kept = torch.full((1, 2, 4), -1)
    kept[0, 0, 1:] = 2

    class Watching(ToyDenoiser):
        def forward_noised(self, inputs, positions, slots, visible, noised):  # type: ignore[no-untyped-def]
            under = positions[noised.levels > 0]
            assert not ((under >= 1) & (under < 4)).any()
            return super().forward_noised(inputs, positions, slots, visible, noised)

    result = run_to_end(decode(Watching(grid, 3), [None], sjd2(6, 2), SETTINGS, [3], kept))
    assert result.tokens[0, 0, 1:].tolist() == [2, 2, 2]


def test_a_model_without_the_weights_is_refused() -> None:
    with pytest.raises(DecodingError, match="trained to read noise"):
        run_to_end(decode(ToyTarget(PLAIN, 3), [None], sjd2(4), SETTINGS, [0]))


@pytest.mark.parametrize(
    ("decoder", "words"), [(block_sjd(4), "block"), (pjd(4), "raster"), (sjd_tree(8), "raster")]
)
def test_parts_that_would_read_noise_are_refused(decoder: object, words: str) -> None:
    with pytest.raises(DecodingError, match=words):
        replace(decoder, initialiser=GaussianNoise(2))  # type: ignore[type-var]


@pytest.mark.parametrize("steps", [0, 65])
def test_steps_are_bounded(steps: int) -> None:
    with pytest.raises(DecodingError, match=str(steps)):
        sjd2(4, steps)


def test_levels_rise_as_karras_say() -> None:
    levels = GaussianNoise(3).levels(0.1, 10.0)
    middle = ((0.1 ** (1 / 7) + 10.0 ** (1 / 7)) / 2) ** 7
    assert levels == pytest.approx([0.0, 0.1, middle, 10.0], rel=1e-6)
    assert GaussianNoise(1).levels(0.1, 10.0) == pytest.approx([0.0, 10.0])


def test_noise_shrinks_towards_the_guess() -> None:
    guess, noise = torch.full((1, 1, 2), 3.0), torch.tensor([[[1.0, -1.0]]])
    levels = torch.tensor([0.0, 0.5, 2.0])
    once = denoised(Trajectories(guess + 2.0 * noise, torch.tensor([[2]])), guess, levels)
    assert once.left.item() == 1
    torch.testing.assert_close(once.embeddings, guess + 0.5 * noise)
    twice = denoised(once, guess, levels)
    assert twice.left.item() == 0
    torch.testing.assert_close(twice.embeddings, guess)


def test_noise_is_keyed_by_seed_and_cell() -> None:
    cells, all_of_them = np.array([[0, 1], [1, 0]]), np.ones((2, 2), bool)
    made = start_trajectories([7, 7], cells, all_of_them, 3, np.float32(2.0), 4, torch.device("cpu"))
    assert torch.equal(made.embeddings[0], made.embeddings[1].flip(0))
    assert not torch.equal(made.embeddings[0, 0], made.embeddings[0, 1])
    assert made.left.tolist() == [[3, 3], [3, 3]]


def test_every_pass_fixes_a_token_at_least() -> None:
    target = ToyDenoiser(PLAIN, 3)
    result = run_to_end(decode(target, [None], sjd2(4, 3), SETTINGS, [1]))
    assert result.trace.passes <= PLAIN.cells


@pytest.mark.parametrize("draw", DRAWS)
def test_laws_that_are_not_finite_are_told_of(draw: str) -> None:
    """Before a token that such a law drew is looked up in a table that has no row for it."""

    class Failing(ToyDenoiser):
        def forward_noised(self, *args: Any) -> torch.Tensor:
            return torch.full_like(super().forward_noised(*args), torch.nan)

    with pytest.raises(NonFiniteLogits):
        run_to_end(decode(Failing(TokenGrid(2, 4), 5), [None], sjd2(3, draw=draw), SETTINGS, [1]))
