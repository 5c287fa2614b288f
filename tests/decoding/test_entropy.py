"""The entropy in a trace is that of the law each token was fixed under: the model's, after the tokens before
it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    block_sjd,
    decode,
    pjd,
    run_to_end,
    same_picture,
    same_picture_tree,
    sjd,
    sjd_tree,
    with_prediction,
    with_semantics,
    zipar,
)
from jacobi_ar.decoding.run import Run
from jacobi_ar.decoding.sampling import entropy, warp
from jacobi_ar.decoding.tree import TreeWindow
from torch import Tensor

from .test_rows import ToyRows
from .toy import ToyTarget
from .toy_tree import ToyTree

GRID = TokenGrid(2, 3, row_end=(4,))
SETTINGS = SamplingSettings(0.8, 3, 1.0)
IN_RASTER_ORDER = {
    "autoregressive": autoregressive(),
    "same picture": same_picture(3),
    "sjd": sjd(3),
    "block": block_sjd(2),
    "semantics": with_semantics(sjd(3)),
    "prediction": with_prediction(sjd(3)),
    "sjd tree": sjd_tree(3, depth=2),
    "same picture tree": same_picture_tree(3, depth=2),
}


def expected(target: ToyTarget, picture: Tensor) -> list[float]:
    """Entropy in bits of the model's law at each cell, the picture's tokens before it given."""
    structure = GRID.structure()
    stream = structure.copy()
    stream[GRID.cell_positions()] = picture.flatten().numpy()
    found = []
    for position in GRID.cell_positions():
        code = int(((torch.from_numpy(stream[:position]) + 1) * target.powers[:position]).sum())
        law = warp(target.table[code].double(), SETTINGS)
        found.append(-sum(q * np.log2(q) for q in law.tolist() if q > 0))
    return found


def check(decoder: Decoder, kept: Tensor | None = None) -> None:
    target = ToyTree(GRID, 4) if isinstance(decoder.schedule, TreeWindow) else ToyTarget(GRID, 4)
    seeds = list(range(40))
    result = run_to_end(decode(target, [None] * 40, decoder, SETTINGS, seeds, kept))
    assert result.trace.entropy.shape == (40, 2, 3) and result.trace.entropy.dtype == np.float32
    for index in range(40):
        fixed = result.trace.step_of[index].ravel() > 0
        found = result.trace.entropy[index].ravel()
        wanted = np.where(fixed, expected(target, result.tokens[index]), np.nan)
        assert np.allclose(found, wanted, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("decoder", IN_RASTER_ORDER.values(), ids=list(IN_RASTER_ORDER))
def test_entropies_are_those_of_the_models_laws(decoder: Decoder) -> None:
    check(decoder)


@pytest.mark.parametrize("decoder", [same_picture(3), sjd(3)], ids=["same picture", "sjd"])
def test_given_tokens_have_none(decoder: Decoder) -> None:
    kept = torch.full((40, 2, 3), -1)
    kept[:, 0, :2], kept[:, 1, 1] = 2, 0
    check(decoder, kept)


@pytest.mark.parametrize("decoder", [pjd(2, 2), zipar(2)], ids=["pjd", "zipar"])
def test_rows_record_every_token(decoder: Decoder) -> None:
    """Their laws are of what they saw of the row above, so only their range is known."""
    target = ToyRows(GRID, 4)
    result = run_to_end(decode(target, [None] * 20, decoder, SETTINGS, list(range(20))))
    assert ((result.trace.entropy > 0) & (result.trace.entropy <= np.log2(3) + 1e-5)).all()


def late(self: Run, laws: Tensor, where: np.ndarray, accepted: np.ndarray) -> None:
    """Broken: the law of the row after."""
    NOTE(self, laws.roll(-1, 1), where, accepted)


def short(self: Run, laws: Tensor, where: np.ndarray, accepted: np.ndarray) -> None:
    """Broken: without the emitted token."""
    NOTE(self, laws, where, np.maximum(accepted - 1, 0))


NOTE = Run._note_entropy


@pytest.mark.parametrize("broken", [late, short])
def test_the_check_tells_broken_entropies(broken: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "_note_entropy", broken)
    with pytest.raises(AssertionError):
        check(same_picture(3))


def test_entropy_in_bits() -> None:
    laws = torch.tensor([[1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]])
    assert entropy(laws).tolist() == [0.0, 2.0, 1.0]
