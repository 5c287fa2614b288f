"""The parts one by one: sampling chain, draws, random streams, grids, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    DecodingError,
    NonFiniteLogits,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    block_sjd,
    decode,
    greedy_jacobi,
    gsd,
    lantern,
    run_to_end,
    same_picture,
    sjd,
    with_prediction,
    with_semantics,
)
from jacobi_ar.decoding.block import BlockTest
from jacobi_ar.decoding.draws import inverse_cdf, noisy_argmax, residual
from jacobi_ar.decoding.lanes import Stream
from jacobi_ar.decoding.randomness import UniformStream, exponential_noise
from jacobi_ar.decoding.redrafters import GreedyDraw, Redrafter, SharedNoiseDraw, TargetLaw
from jacobi_ar.decoding.sampling import warp
from jacobi_ar.decoding.verifiers import TokenTest

from .toy import ToyTarget

LOGITS = torch.tensor([0.5, 0.4, 0.3, 0.2]).log()


@pytest.mark.parametrize(
    ("settings", "law"),
    [
        (SamplingSettings(), [5 / 14, 4 / 14, 3 / 14, 2 / 14]),
        (SamplingSettings(temperature=0.5), [25 / 54, 16 / 54, 9 / 54, 4 / 54]),
        (SamplingSettings(top_k=2), [5 / 9, 4 / 9, 0, 0]),
        (SamplingSettings(top_k=1), [1, 0, 0, 0]),
        (SamplingSettings(top_k=9), [5 / 14, 4 / 14, 3 / 14, 2 / 14]),
        (SamplingSettings(top_p=0.36), [5 / 9, 4 / 9, 0, 0]),  # the token that crosses p stays
        (SamplingSettings(top_p=0.35), [1, 0, 0, 0]),
        (
            SamplingSettings(top_k=3, top_p=0.76),
            [5 / 12, 4 / 12, 3 / 12, 0],
        ),  # p counts within the k: 9/12 < 0.76
        (SamplingSettings(top_k=3, top_p=0.74), [5 / 9, 4 / 9, 0, 0]),
        (SamplingSettings(temperature=0.0), [1, 0, 0, 0]),
    ],
    ids=str,
)
def test_sampling_chain(settings: SamplingSettings, law: list[float]) -> None:
    expected = torch.tensor(law, dtype=torch.float32).expand(3, 2, 4)
    torch.testing.assert_close(warp(LOGITS.expand(3, 2, 4), settings), expected)


@pytest.mark.parametrize("temperature", [1e-5, 1e-30, 1e-39, 1e-310])
@pytest.mark.parametrize("size", [1.0, 1e30])
def test_tiny_temperatures_are_greedy(temperature: float, size: float) -> None:
    law = warp(torch.tensor([0.1, 0.9, 0.5]) * size, SamplingSettings(temperature))
    assert law.tolist() == [0.0, 1.0, 0.0]


def test_ties_at_a_cutoff_stay() -> None:
    law = warp(torch.tensor([2.0, 1.0, 1.0, 0.0]), SamplingSettings(top_k=2))
    assert (law > 0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    "bad",
    [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}, {"temperature": float("nan")}],
)
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(DecodingError, match=next(iter(bad))):
        SamplingSettings(**bad)  # type: ignore[arg-type]


def test_inverse_cdf_never_picks_a_token_without_mass() -> None:
    law = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]]).expand(4, 5)
    top = np.float32(1 - 2**-24)
    assert inverse_cdf(law, torch.tensor([0.0, 0.29, 0.31, top])).tolist() == [1, 1, 3, 3]
    random = torch.rand(2000, 300, generator=torch.Generator().manual_seed(0)) ** 40
    random = random / random.sum(-1, keepdim=True)
    random[:, -50:] = 0.0
    for uniform in (0.0, float(top)):
        drawn = inverse_cdf(random, torch.full((2000,), uniform))
        assert (random.gather(1, drawn[:, None]) > 0).all()


def test_noisy_argmax_is_the_gumbel_maximum() -> None:
    law = torch.rand(50, 64, generator=torch.Generator().manual_seed(1)).double()
    noise = torch.from_numpy(np.stack([exponential_noise(3, cell, 64) for cell in range(50)]))
    assert torch.equal(noisy_argmax(law, noise), (law.log() - noise.log()).argmax(-1))


def test_residual_falls_back_to_the_target_where_nothing_is_left() -> None:
    q, p = torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([[0.5, 0.5], [0.6, 0.4]])
    torch.testing.assert_close(residual(q, p), torch.tensor([[0.5, 0.5], [0.0, 0.4]]))


def test_noise_is_finite_positive_and_keyed_by_seed_and_cell_alone() -> None:
    rows = {
        (seed, cell): exponential_noise(seed, cell, 4096)
        for seed in (0, 1, 2**32, 2**63, 2**64 - 1)
        for cell in (0, 1)
    }
    for row in rows.values():
        assert np.isfinite(row).all() and (row > 0).all()
        assert abs(row.mean() - 1) < 0.08
    assert len({row[:4].tobytes() for row in rows.values()}) == len(rows)
    assert np.array_equal(exponential_noise(1, 1, 10), rows[1, 1][:10])


def test_noise_and_uniforms_of_a_seed_never_change() -> None:
    """A seed means the same picture in every release: literal values."""
    np.testing.assert_allclose(exponential_noise(42, 7, 3), EXPECTED_NOISE, rtol=1e-15)
    np.testing.assert_array_equal(UniformStream(42).take(3), np.float32(EXPECTED_UNIFORMS))


EXPECTED_NOISE = [1.761377197677731, 1.7839510815110098, 2.525961853254684]
EXPECTED_UNIFORMS = [0.8700463771820068, 0.4437468647956848, 0.17185938358306885]


def test_stream_and_cells_of_a_grid_with_row_ends() -> None:
    grid = TokenGrid(2, 3, row_end=(9, 8))
    assert (grid.cells, grid.length, grid.stride) == (6, 8, 5)
    assert grid.cell_positions().tolist() == [0, 1, 2, 5, 6, 7]
    assert grid.structure().tolist() == [-1, -1, -1, 9, 8, -1, -1, -1]
    stream = Stream(grid, np.array([[-1, 4, -1, -1, -1, -1]]))
    assert stream.next_unknown(np.array([0] * 5), np.array([0, 1, 3, 7, 8])).tolist() == [0, 2, 5, 7, 8]
    assert stream.longest_known_run() == 2
    with pytest.raises(ValueError, match="at least one row"):
        TokenGrid(0, 3)


def test_promises() -> None:
    assert (
        autoregressive().promise is greedy_jacobi().promise is same_picture().promise is Promise.SAME_PICTURE
    )
    assert sjd().promise is Promise.SAME_DISTRIBUTION
    parts = sjd().schedule, sjd().initialiser
    with pytest.raises(DecodingError, match="biased"):
        Decoder("broken", *parts, TokenTest(), Redrafter(TargetLaw(), GreedyDraw()))
    with pytest.raises(DecodingError, match="block test cannot follow"):
        Decoder("broken", *parts, BlockTest(), Redrafter(TargetLaw(), SharedNoiseDraw()))
    for decoder in (autoregressive(), greedy_jacobi(), same_picture(), block_sjd()):
        with pytest.raises(DecodingError, match="semantics verification"):
            with_semantics(decoder)
    for decoder in (autoregressive(), greedy_jacobi()):
        with pytest.raises(DecodingError, match="verification prediction"):
            with_prediction(decoder)
    assert block_sjd().promise is with_prediction(sjd()).promise is Promise.SAME_DISTRIBUTION
    assert gsd().promise is lantern().promise is with_semantics(sjd()).promise is Promise.APPROXIMATE
    assert with_prediction(same_picture()).promise is Promise.SAME_PICTURE


@pytest.mark.parametrize(
    "build",
    [
        lambda: sjd(0),
        lambda: sjd(5000),
        lambda: sjd(4, "magic"),
        lambda: sjd(4, "uniform", "magic"),
        lambda: autoregressive(-1),
    ],
)
def test_decoder_values_out_of_range_are_refused(build) -> None:  # noqa: ANN001
    with pytest.raises(DecodingError):
        build()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_stop_the_decode_with_a_sentence(bad: float) -> None:
    class Failing(ToyTarget):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            logits = super().forward(*args)
            if self.forwards == 4:
                logits[1, 0, 1] = bad
            return logits

    target = Failing(TokenGrid(2, 4), vocabulary=2)
    with pytest.raises(NonFiniteLogits, match=r"forward 4, for image 1 .* float32 or bfloat16"):
        run_to_end(decode(target, [None] * 3, autoregressive(), SamplingSettings(), [1, 2, 3]))
