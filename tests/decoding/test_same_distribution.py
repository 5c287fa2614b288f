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
    Codebook,
    Decoder,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    block_sjd,
    decode,
    gsd,
    image_seeds,
    lantern,
    run_to_end,
    same_picture,
    sjd,
    with_prediction,
    with_semantics,
)
from jacobi_ar.decoding.drafts import Drafts
from jacobi_ar.decoding.draws import inverse_cdf, keeps
from jacobi_ar.decoding.initialisers import CopyLeft, Frontier, UniformToken
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.redrafters import Draw, FreshDraw, MaximalCoupling, Redrafter, RedraftLaw, TargetLaw
from jacobi_ar.decoding.step import Step
from jacobi_ar.decoding.verifiers import TokenTest, Verdict

from .chi_square import FAILS_BELOW, PASSES_ABOVE, chi_square_p
from .toy import ToyTarget, picture_number

PLAIN = TokenGrid(2, 3)
LINED = TokenGrid(2, 2, row_end=(3,))  # one structure token between the rows
SETTINGS = SamplingSettings()
CODEBOOK = Codebook(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))


def law_p(
    decoder: Decoder,
    images: int,
    batch: int,
    grid: TokenGrid = PLAIN,
    sampling: SamplingSettings = SETTINGS,
    toy: type[ToyTarget] = ToyTarget,
) -> float:
    """p-value of `images` pictures made in batches of `batch`, one seed each."""
    target = toy(grid, vocabulary=3)
    counts = np.zeros(3**grid.cells)
    for first in range(0, images, batch):
        seeds = image_seeds(first + 1, batch)
        result = run_to_end(decode(target, [None] * batch, decoder, sampling, seeds, codebook=CODEBOOK))
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


EXACT = {
    "block test": block_sjd(4),
    "block test, copy above": block_sjd(4, "copy above"),
    "prediction, fresh": with_prediction(sjd(4), growth=1),
    "prediction, maximal coupling": with_prediction(
        sjd(4, "uniform", "maximal coupling"), growth=2, decay=0.7
    ),
    "prediction, shared noise": with_prediction(sjd(4, "uniform", "shared noise"), growth=1),
    "prediction, block test": with_prediction(block_sjd(4), growth=1),
}


@pytest.mark.parametrize("name", EXACT)
def test_other_exact_decoders_have_the_joint_law(name: str) -> None:
    assert law_p(EXACT[name], 24_000, 6_000) > PASSES_ABOVE


@pytest.mark.parametrize("name", ["block test", "prediction, fresh"])
def test_other_exact_decoders_have_the_joint_law_across_structure_tokens(name: str) -> None:
    assert law_p(EXACT[name], 12_000, 4_000, LINED) > PASSES_ABOVE


APPROXIMATE = {
    "GSD": gsd(4, group=2, embedding_gap=100.0, probability_gap=1.0),
    "LANTERN": lantern(4, "copy left", neighbours=2, bound=0.2),
    "SV": with_semantics(sjd(4)),
    "SV, whole runs": with_semantics(sjd(4), proportion=1.0),
    "SV, fresh numbers": with_semantics(sjd(4), one_number=False),
    "GSD-SV": with_semantics(gsd(4, group=2, embedding_gap=100.0, probability_gap=1.0)),
    "LANTERN-SV": with_semantics(lantern(4, "copy left", neighbours=2, bound=0.2)),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_decoders_are_rightly_called_so(name: str) -> None:
    assert APPROXIMATE[name].promise is Promise.APPROXIMATE
    assert law_p(APPROXIMATE[name], 12_000, 6_000) < FAILS_BELOW


@pytest.mark.parametrize("decoder", [autoregressive(), same_picture(4)], ids=lambda d: d.name)
def test_shared_noise_draws_have_the_joint_law(decoder: Decoder) -> None:
    assert law_p(decoder, 12_000, 3_000) > PASSES_ABOVE


# --- Variants broken the ways that public implementations were, or easily are. Each must be caught. ---


@dataclass(frozen=True)
class KeptDraftsWithTheirOldLaw(Redrafter):
    """A kept draft keeps the law of its last try: its law given that it was kept is min(p, q), not p."""

    def redraft(self, step: Step) -> Drafts:
        redrafts, width, old = super().redraft(step), step.width, step.drafts
        coins = step.uniforms.coins[:, :width]
        kept = step.testable & keeps(old.tokens, step.target_laws[:, :width], old.laws, coins)
        laws = redrafts.laws.clone()
        laws[:, :width] = torch.where(kept[..., None], old.laws, laws[:, :width])
        return Drafts(redrafts.tokens, laws)


@dataclass(frozen=True)
class LikelyDraftsStay(Redrafter):
    """Drafts whose ratio q / p exceeds 0.5 stay, with their old law."""

    def redraft(self, step: Step) -> Drafts:
        half = torch.full_like(step.uniforms.coins[:, : step.width], 0.5)
        width, old = step.width, step.drafts
        stays = step.testable & keeps(old.tokens, step.target_laws[:, :width], old.laws, half)
        return stay(super().redraft(step), old, stays)


def stay(redrafts: Drafts, old: Drafts, stays: torch.Tensor) -> Drafts:
    """Redrafts in which the chosen old drafts stand with their old laws."""
    width = stays.shape[1]
    tokens, laws = redrafts.tokens.clone(), redrafts.laws.clone()
    tokens[:, :width] = torch.where(stays, old.tokens, tokens[:, :width])
    laws[:, :width] = torch.where(stays[..., None], old.laws, laws[:, :width])
    return Drafts(tokens, laws)


@dataclass(frozen=True)
class SharpenedDraftsUndeclared(Redrafter):
    """Drawn from one law, declared as another."""

    def redraft(self, step: Step) -> Drafts:
        tokens = inverse_cdf(step.target_laws**2, step.uniforms.redraws[:, : step.width + 1])
        return Drafts(tokens, step.target_laws)


@dataclass(frozen=True)
class PredictionUndeclared(Redrafter):
    """Verification prediction that declares the unfused law."""

    def redraft(self, step: Step) -> Drafts:
        redrafts = super().redraft(step)
        return replace(redrafts, laws=step.target_laws)


@dataclass(frozen=True)
class ResidualReplacedByTarget(TokenTest):
    """The token after a rejection is drawn from q."""

    def verify(self, step: Step) -> Verdict:
        accepted = super().verify(step).accepted
        return Verdict(accepted, inverse_cdf(step.law_after(accepted), step.uniforms.emission))


@dataclass(frozen=True)
class OneCoinForAll(TokenTest):
    """All drafts of a step are tested with the same coin."""

    def verify(self, step: Step) -> Verdict:
        uniforms = step.uniforms
        step.uniforms = replace(uniforms, coins=uniforms.coins[:, :1].expand_as(uniforms.coins))
        return super().verify(step)


@dataclass(frozen=True)
class ShortestLaneCommits(TokenTest):
    """All images of a batch commit as much as the one with the shortest accepted run."""

    def verify(self, step: Step) -> Verdict:
        accepted, emitted, _ = super().verify(step)
        shortest = accepted.min().expand_as(accepted)
        if step.width:
            first_cut = step.drafts.tokens.gather(1, shortest[:, None].clamp(max=step.width - 1))[:, 0]
            emitted = torch.where(accepted > shortest, first_cut, emitted)
        return Verdict(shortest, emitted)


@dataclass(frozen=True)
class AcceptedDraftsAreTestedAgain(Redrafter):
    """Accepted drafts that were not committed go back to being drafts with their old law."""

    def redraft(self, step: Step) -> Drafts:
        accepted = TokenTest().verify(step).accepted
        return stay(super().redraft(step), step.drafts, torch.arange(step.width) < accepted[:, None])


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


def broken(redrafter: type[Redrafter], draw: Draw, law: RedraftLaw) -> Decoder:
    return replace(SJD, redrafter=redrafter(law, draw))


SJD, FRESH, TARGET = sjd(4, "uniform", "fresh"), FreshDraw(), TargetLaw()
BROKEN = {
    "kept drafts keep their old law": broken(KeptDraftsWithTheirOldLaw, MaximalCoupling(), TARGET),
    "drafts with a ratio above a half stay": broken(LikelyDraftsStay, FRESH, TARGET),
    "drawn from a sharper law than declared": broken(SharpenedDraftsUndeclared, FRESH, TARGET),
    "prediction that declares the unfused law": broken(
        PredictionUndeclared, FRESH, VerificationPrediction(1)
    ),
    "residual replaced by the target law": replace(SJD, verifier=ResidualReplacedByTarget()),
    "one coin for all drafts": replace(SJD, verifier=OneCoinForAll()),
    "copied token declared uniform": replace(SJD, initialiser=OneHotDeclaredUniform()),
    "half the codes declared as all": replace(SJD, initialiser=HalfTheCodesDeclaredAsAll()),
    "the shortest lane rules the batch": replace(
        broken(AcceptedDraftsAreTestedAgain, FRESH, TARGET), verifier=ShortestLaneCommits()
    ),
}


@pytest.mark.parametrize("variant", BROKEN)
def test_broken_variants_are_caught(variant: str) -> None:
    subtle = "unfused" in variant  # a small bias: more pictures to see it
    assert law_p(BROKEN[variant], 72_000 if subtle else 36_000, 6_000) < FAILS_BELOW
