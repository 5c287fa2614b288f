"""Every combination of parts is refused with a reason, or runs and keeps what the table of promises says."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from jacobi_ar.decoding import (
    INITIALISERS,
    Codebook,
    Decoder,
    DecodingError,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    run_to_end,
)
from jacobi_ar.decoding.block import BlockTest
from jacobi_ar.decoding.lanes import ACCEPTED, NOTHING
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.ratios import GroupedRatio, NeighbourhoodRatio
from jacobi_ar.decoding.redrafters import (
    FreshDraw,
    GreedyDraw,
    MaximalCoupling,
    Redrafter,
    SharedNoiseDraw,
    TargetLaw,
)
from jacobi_ar.decoding.rows import RowParallel
from jacobi_ar.decoding.schedules import RasterWindow
from jacobi_ar.decoding.semantics import SemanticsVerification
from jacobi_ar.decoding.tree import TreeWindow
from jacobi_ar.decoding.tree_verifiers import TreeMatch, TreeTest
from jacobi_ar.decoding.verifiers import GreedyMatch, SharedNoiseMatch, TokenTest

from .test_rows import ToyRows
from .toy_tree import ToyTree

VERIFIERS = {
    "shared-noise match": SharedNoiseMatch(),
    "greedy match": GreedyMatch(),
    "token test": TokenTest(),
    "block test": BlockTest(),
    "GSD": TokenTest(GroupedRatio(2)),
    "LANTERN": TokenTest(NeighbourhoodRatio(1, 0.3)),
    "SV": SemanticsVerification(),
    "GSD-SV": SemanticsVerification(GroupedRatio(2)),
    "LANTERN-SV": SemanticsVerification(NeighbourhoodRatio(1, 0.3)),
    "token test over a tree": TreeTest(),
    "shared-noise match over a tree": TreeMatch(),
}
DRAWS = [FreshDraw(), MaximalCoupling(), SharedNoiseDraw(), GreedyDraw()]
LAWS = [TargetLaw(), VerificationPrediction(1)]
SCHEDULES = {
    "raster": RasterWindow(3),
    "raster, fixed shapes": RasterWindow(3, fixed_shapes=True),
    "rows": RowParallel(2, 1, ACCEPTED),
    "rows that only draft": RowParallel(2, 1, NOTHING),
    "tree": TreeWindow(3, siblings=2, depth=2),
}
GRIDS = [TokenGrid(3, 3), TokenGrid(3, 2, row_end=(2,))]


def expected(verifier: str, draw: str, schedule: str) -> Promise | None:
    """The table of docs/promises.md, None where it says refused."""
    if verifier.endswith("tree") != (schedule == "tree"):
        return None
    if "match" in verifier:
        promise = Promise.SAME_PICTURE
    elif draw == "likeliest" or (verifier == "block test" and draw != "fresh"):
        return None
    else:
        exact = verifier in ("token test", "block test", "token test over a tree")
        promise = Promise.SAME_DISTRIBUTION if exact else Promise.APPROXIMATE
    return Promise.APPROXIMATE if schedule == "rows" else promise


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("verifier", VERIFIERS)
def test_every_combination_is_refused_or_runs(verifier: str, schedule: str) -> None:
    sampling, seeds, codebook = SamplingSettings(), [3, 4, 5], Codebook(torch.tensor([[0.0], [0.3]]))
    for initialiser, draw, law in product(INITIALISERS.values(), DRAWS, LAWS):
        parts = (SCHEDULES[schedule], initialiser, VERIFIERS[verifier], Redrafter(law, draw))
        promise = expected(verifier, draw.name, schedule)
        if promise is None:
            with pytest.raises(DecodingError, match="biased without notice|tree of drafts"):
                Decoder("combination", *parts)
            continue
        decoder = Decoder("combination", *parts)
        assert decoder.promise is promise
        for grid in GRIDS:
            toy = ToyTree if schedule == "tree" else ToyRows
            target = toy(grid, vocabulary=2, seed=1)
            tokens = run_to_end(decode(target, seeds, decoder, sampling, seeds, codebook=codebook)).tokens
            assert ((tokens >= 0) & (tokens < 2)).all()
            if promise is Promise.SAME_PICTURE:
                cold = SamplingSettings(temperature=0.0) if verifier == "greedy match" else sampling
                reference = decode(toy(grid, 2, 1), seeds, autoregressive(), cold, seeds)
                assert torch.equal(tokens, run_to_end(reference).tokens)
