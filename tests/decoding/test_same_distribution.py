"""Same distribution: SJD with every initialiser and every draw has the model's joint law; broken variants do
not.

See Note [Seeded law tests] in chi_square.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    DRAWS,
    INITIALISERS,
    Decoder,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    image_seeds,
    run_to_end,
    same_picture,
    sjd,
)
from jacobi_ar.decoding.drafts import Drafts
from jacobi_ar.decoding.draws import inverse_cdf, keeps
from jacobi_ar.decoding.initialisers import CopyLeft, Frontier, UniformToken
from jacobi_ar.decoding.redrafters import FreshDraw, MaximalCoupling
from jacobi_ar.decoding.step import Step
from jacobi_ar.decoding.verifiers import ExactTokenTest, Verdict

from .chi_square import FAILS_BELOW, PASSES_ABOVE, chi_square_p
from .toy import ToyTarget, picture_number

PLAIN = TokenGrid(2, 3)
LINED = TokenGrid(2, 2, row_end=(3,))  # one structure token between the rows
SETTINGS = SamplingSettings()


def law_p(
    decoder: Decoder, images: int, batch: int, grid: TokenGrid = PLAIN, sampling: SamplingSettings = SETTINGS
) -> float:
    """p-value of `images` pictures made in batches of `batch`, one seed each."""
    target = ToyTarget(grid, vocabulary=3)
    counts = np.zeros(3**grid.cells)
    for first in range(0, images, batch):
        seeds = image_seeds(first + 1, batch)
        result = run_to_end(decode(target, [None] * batch, decoder, sampling, seeds))
        np.add.at(counts, picture_number(result.tokens.view(batch, -1).numpy(), 3), 1)
    return chi_square_p(counts, target.joint_law(sampling))


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("initialiser", INITIALISERS)
def test_sjd_has_the_joint_law(initialiser: str, draw: str) -> None:
    assert law_p(sjd(4, initialiser, draw), 12_000, batch=3_000) > PASSES_ABOVE


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("batch", [1, 4])
def test_sjd_has_the_joint_law_in_small_batches(batch: int, draw: str) -> None:
    assert law_p(sjd(4, "uniform", draw), 2_000 if batch == 1 else 4_000, batch) > PASSES_ABOVE


@pytest.mark.parametrize("draw", DRAWS)
def test_sjd_has_the_joint_law_across_structure_tokens(draw: str) -> None:
    assert law_p(sjd(3, "copy above", draw), 9_000, 3_000, LINED) > PASSES_ABOVE


@pytest.mark.parametrize(
    "sampling", [SamplingSettings(0.7), SamplingSettings(top_k=2), SamplingSettings(1.3, 0, 0.8)]
)
def test_sjd_has_the_joint_law_under_the_sampling_chain(sampling: SamplingSettings) -> None:
    assert law_p(sjd(4, "uniform", "maximal coupling"), 9_000, 3_000, sampling=sampling) > PASSES_ABOVE


@pytest.mark.parametrize("decoder", [autoregressive(), same_picture(4)], ids=lambda d: d.name)
def test_shared_noise_draws_have_the_joint_law(decoder: Decoder) -> None:
    assert law_p(decoder, 12_000, 3_000) > PASSES_ABOVE


# --- Variants broken the ways that public implementations were, or easily are. Each must be caught. ---


@dataclass(frozen=True)
class KeptDraftsWithTheirOldLaw(MaximalCoupling):
    """A kept draft keeps the law of its last try: its law given that it was kept is min(p, q), not p."""

    def redraft(self, step: Step) -> Drafts:
        redrafts, width = super().redraft(step), step.width
        old = step.drafts
        kept = step.testable & keeps(
            old.tokens, step.target_laws[:, :width], old.laws, step.uniforms.coins[:, :width]
        )
        laws = redrafts.laws.clone()
        laws[:, :width] = torch.where(kept[..., None], old.laws, laws[:, :width])
        return Drafts(redrafts.tokens, laws)


@dataclass(frozen=True)
class LikelyDraftsStay(FreshDraw):
    """Drafts whose ratio q / p exceeds 0.5 stay, with their old law."""

    def redraft(self, step: Step) -> Drafts:
        redrafts, width = super().redraft(step), step.width
        old = step.drafts
        half = torch.full_like(step.uniforms.coins[:, :width], 0.5)
        stays = step.testable & keeps(old.tokens, step.target_laws[:, :width], old.laws, half)
        tokens, laws = redrafts.tokens.clone(), redrafts.laws.clone()
        tokens[:, :width] = torch.where(stays, old.tokens, tokens[:, :width])
        laws[:, :width] = torch.where(stays[..., None], old.laws, laws[:, :width])
        return Drafts(tokens, laws)


@dataclass(frozen=True)
class SharpenedDraftsUndeclared(FreshDraw):
    """Drawn from one law, declared as another (verification prediction with the unfused law)."""

    def redraft(self, step: Step) -> Drafts:
        sharp = step.target_laws**2
        tokens = inverse_cdf(sharp, step.uniforms.redraws[:, : step.width + 1])
        return Drafts(tokens, step.target_laws)


@dataclass(frozen=True)
class ResidualReplacedByTarget(ExactTokenTest):
    """The token after a rejection is drawn from q."""

    def verify(self, step: Step) -> Verdict:
        accepted, _ = super().verify(step)
        return Verdict(accepted, inverse_cdf(step.law_after(accepted), step.uniforms.emission))


@dataclass(frozen=True)
class OneCoinForAll(ExactTokenTest):
    """All drafts of a step are tested with the same coin."""

    def verify(self, step: Step) -> Verdict:
        uniforms = step.uniforms
        step.uniforms = replace(uniforms, coins=uniforms.coins[:, :1].expand_as(uniforms.coins))
        return super().verify(step)


@dataclass(frozen=True)
class ShortestLaneCommits(ExactTokenTest):
    """All images of a batch commit as much as the one with the shortest accepted run."""

    def verify(self, step: Step) -> Verdict:
        accepted, emitted = super().verify(step)
        shortest = accepted.min().expand_as(accepted)
        if step.width:
            first_cut = step.drafts.tokens.gather(1, shortest[:, None].clamp(max=step.width - 1))[:, 0]
            emitted = torch.where(accepted > shortest, first_cut, emitted)
        return Verdict(shortest, emitted)


@dataclass(frozen=True)
class AcceptedDraftsAreTestedAgain(FreshDraw):
    """Accepted drafts that were not committed go back to being drafts with their old law."""

    def redraft(self, step: Step) -> Drafts:
        redrafts, width = super().redraft(step), step.width
        old = step.drafts
        accepted, _ = ExactTokenTest().verify(step)
        again = torch.arange(width) < accepted[:, None]
        tokens, laws = redrafts.tokens.clone(), redrafts.laws.clone()
        tokens[:, :width] = torch.where(again, old.tokens, tokens[:, :width])
        laws[:, :width] = torch.where(again[..., None], old.laws, laws[:, :width])
        return Drafts(tokens, laws)


@dataclass(frozen=True)
class OneHotDeclaredUniform(CopyLeft):
    """The left neighbour's token, declared as drawn uniformly."""

    def initialise(self, frontier: Frontier) -> Drafts:
        copied = super().initialise(frontier)
        return Drafts(copied.tokens, torch.full_like(copied.laws, 1.0 / copied.laws.shape[-1]))


@dataclass(frozen=True)
class HalfTheCodesDeclaredAsAll(UniformToken):
    """Draws from the lower half of the codebook and declares the whole."""

    def initialise(self, frontier: Frontier) -> Drafts:
        return super().initialise(replace(frontier, uniforms=frontier.uniforms * 0.5))


SJD = sjd(4, "uniform", "fresh")
BROKEN = {
    "kept drafts keep their old law": replace(SJD, redrafter=KeptDraftsWithTheirOldLaw()),
    "drafts with a ratio above a half stay": replace(SJD, redrafter=LikelyDraftsStay()),
    "drawn from a sharper law than declared": replace(SJD, redrafter=SharpenedDraftsUndeclared()),
    "residual replaced by the target law": replace(SJD, verifier=ResidualReplacedByTarget()),
    "one coin for all drafts": replace(SJD, verifier=OneCoinForAll()),
    "copied token declared uniform": replace(SJD, initialiser=OneHotDeclaredUniform()),
    "half the codes declared as all": replace(SJD, initialiser=HalfTheCodesDeclaredAsAll()),
    "the shortest lane rules the batch": replace(
        SJD, verifier=ShortestLaneCommits(), redrafter=AcceptedDraftsAreTestedAgain()
    ),
}


@pytest.mark.parametrize("variant", BROKEN)
def test_broken_variants_are_caught(variant: str) -> None:
    assert law_p(BROKEN[variant], 60_000, 6_000) < FAILS_BELOW
