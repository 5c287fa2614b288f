"""Every decoder runs on every family: whole grids, structure tokens where they belong, promises kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from jacobi_ar import decoding
from jacobi_ar.decoding import (
    DRAWS,
    Codebook,
    Decoder,
    Promise,
    SamplingSettings,
    TokenGrid,
    autoregressive,
    decode,
    run_to_end,
    sjd,
)
from jacobi_ar.decoding.target import Noised
from jacobi_ar.decoding.verifiers import GreedyMatch
from jacobi_ar.model_loaders.denoiser import Denoiser, DenoiserConfig
from jacobi_ar.model_loaders.families import FAMILIES
from jacobi_ar.model_loaders.image_model import ImageModel
from torch import Tensor, nn

from .toy_families import TOYS, load_toy, toy_prompts

SMALL = {"window": 4, "threshold": 2, "siblings": 2, "depth": 1, "group": 4, "neighbours": 5}
REGISTERED = [family.__name__.rsplit(".", 1)[-1] for family in FAMILIES]
SAMPLING = SamplingSettings(temperature=0.9, top_k=12, top_p=0.95)


def all_decoders() -> dict[str, Decoder]:
    """What every maker of decoders in the package makes, in small; additions work over SJD."""
    made = {f"sjd, {draw}": sjd(4, draw=draw) for draw in DRAWS}
    for name in decoding.__all__:
        maker = getattr(decoding, name)
        if inspect.isfunction(maker) and inspect.signature(maker).return_annotation == "Decoder":
            parameters = inspect.signature(maker).parameters
            settings = {key: value for key, value in SMALL.items() if key in parameters}
            made[name] = maker(**settings, **({"decoder": sjd(4)} if "decoder" in parameters else {}))
    return made | {"autoregressive, padded": autoregressive(4)}


DECODERS = all_decoders()


def test_every_family_and_decoder_is_here() -> None:
    assert set(REGISTERED) <= set(TOYS)
    assert len(DECODERS) >= 16 and {"same_picture", "pjd", "with_semantics"} <= set(DECODERS)


@pytest.fixture(scope="module", params=[toy for name in REGISTERED for toy in TOYS.get(name, {})])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ImageModel:
    model = load_toy(request.param, tmp_path_factory.mktemp("toy"))
    assert request.param in ("built-in", model.family)
    # No family but the built-in one has weights for SJD2; any will do to see that it runs and keeps its
    # promise.
    network = model.transformer
    dim = network.transformer.config.dim
    network.denoiser = Denoiser(DenoiserConfig(dim, 8, 0.5, 5.0), nn, dtype=model.dtype)
    network.denoiser.requires_grad_(False)
    return model


class Watched:
    """Notes what a decoder feeds, and refuses what no stream may hold."""

    def __init__(self, model: ImageModel, grid: TokenGrid) -> None:
        self.target = model.target(grid, model.defaults.guidance)
        self.structure = torch.from_numpy(grid.structure())
        self.fed: set[int] = set()
        for name in ("forward", "forward_noised"):
            setattr(self.target, name, self._watched(getattr(self.target, name), model, grid))

    def _watched(
        self, forward: Callable[..., Tensor], model: ImageModel, grid: TokenGrid
    ) -> Callable[..., Tensor]:
        def watched(
            inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor, *noised: Noised
        ) -> Tensor:
            real = slots < grid.length
            expected, cell = self.structure[positions], self.structure[positions] < 0
            assert torch.equal(inputs[real & ~cell], expected[real & ~cell]), "a structure token is another"
            assert (inputs[real & cell] < model.vocabulary).all(), "no code at a cell"
            self.fed |= set(positions[real & ~cell].tolist())
            assert all(not one.levels[real & ~cell].any() for one in noised), "a structure token under noise"
            return forward(inputs, positions, slots, visible, *noised)

        return watched


def run(model: ImageModel, grid: TokenGrid, images: int, decoder: Decoder, greedy: bool) -> Tensor:
    watched = Watched(model, grid)
    codebook = Codebook(torch.randn(model.vocabulary, 4, generator=torch.Generator().manual_seed(0)))
    sampling = SamplingSettings(temperature=0.0) if greedy else SAMPLING
    prompts, seeds = toy_prompts(model, images), list(range(images))
    reports = decode(watched.target, prompts, decoder, sampling, seeds, codebook=codebook)
    tokens = run_to_end(reports).tokens
    assert tokens.shape == (images, grid.rows, grid.cols)
    assert ((tokens >= 0) & (tokens < model.vocabulary)).all()
    assert watched.fed == set(torch.where(watched.structure >= 0)[0].tolist())
    return tokens


@pytest.mark.parametrize(("rows", "cols", "images"), [(4, 4, 1), (5, 3, 3), (3, 6, 3)])
@pytest.mark.parametrize("name", DECODERS)
def test_whole_grids_and_promises(model: ImageModel, name: str, rows: int, cols: int, images: int) -> None:
    decoder, grid = DECODERS[name], TokenGrid(rows, cols, model.grids[0].row_end)
    greedy = isinstance(decoder.verifier, GreedyMatch)
    tokens = run(model, grid, images, decoder, greedy)
    if decoder.promise is Promise.SAME_PICTURE and name != "autoregressive":
        assert torch.equal(tokens, run(model, grid, images, autoregressive(), greedy))
