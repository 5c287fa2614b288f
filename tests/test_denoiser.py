"""A model with a denoiser: what is computed on tokens stays the plain model's, and SJD2 runs on it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    DecodingError,
    SamplingSettings,
    autoregressive,
    decode,
    image_seeds,
    run_to_end,
    same_picture_denoising,
    sjd2,
)
from jacobi_ar.decoding.target import DenoisingModel, Noised
from jacobi_ar.model_loaders.denoiser import Denoiser, DenoiserConfig
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from jacobi_ar.tools.benchmark.command import runnable
from jacobi_ar.tools.benchmark.subject import load_subject
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

NOISE = {"smallest": 3.0, "largest": 30.0}


def with_denoiser(path: Path, noise: object = None, leave_out: str = "") -> Path:
    """The built-in weights with a denoiser that nobody trained."""
    with safe_open(BUILTIN_MODEL, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys() if not name.startswith("denoiser.")}
        metadata = file.metadata()
    torch.manual_seed(0)
    denoiser = Denoiser(DenoiserConfig(weights["tok_embeddings.weight"].shape[1], 32, 3.0, 30.0), nn)
    denoiser.statistics.weight.data[0] = weights["tok_embeddings.weight"].float().mean(0)
    denoiser.statistics.weight.data[1] = weights["tok_embeddings.weight"].float().std(0)
    weights |= {f"denoiser.{name}": weight.half() for name, weight in denoiser.state_dict().items()}
    weights.pop(leave_out, None)
    save_file(weights, path, metadata | {"denoising": json.dumps(noise or NOISE)})
    return path


def without_denoiser(path: Path) -> Path:
    with safe_open(BUILTIN_MODEL, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys() if not name.startswith("denoiser.")}
        metadata = {key: value for key, value in file.metadata().items() if key != "denoising"}
    save_file(weights, path, metadata)
    return path


def loaded(path: Path) -> ImageModel:
    return load_image_model(path, device="cpu", dtype=torch.float32)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> ImageModel:
    return loaded(with_denoiser(tmp_path_factory.mktemp("denoiser") / "with.safetensors"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ImageModel:
    return loaded(without_denoiser(tmp_path_factory.mktemp("denoiser") / "without.safetensors"))


def tokens_of(model: ImageModel, decoder: Decoder, guidance: float, count: int) -> Tensor:
    prompts = [model.encode_prompt("red heart" if guidance > 1 else "")] * count
    target = model.target(model.grids[0], guidance)
    return run_to_end(decode(target, prompts, decoder, SamplingSettings(), image_seeds(4, count))).tokens


@pytest.mark.parametrize("guidance", [1.0, 2.0])
def test_the_same_picture_comes_out_whatever_the_denoiser_makes_of_noise(
    noisy: ImageModel, plain: ImageModel, guidance: float
) -> None:
    wanted = tokens_of(plain, autoregressive(), guidance, 3)
    assert torch.equal(tokens_of(noisy, same_picture_denoising(31, 2), guidance, 3), wanted)
    assert torch.equal(tokens_of(noisy, autoregressive(), guidance, 3), wanted)


def test_sjd2_runs_to_the_end(noisy: ImageModel) -> None:
    tokens = tokens_of(noisy, sjd2(31, 3, "maximal coupling"), 2.0, 2)
    assert tokens.min() >= 0 and tokens.max() < noisy.vocabulary


def test_weights_without_a_denoiser_are_refused(plain: ImageModel) -> None:
    assert not isinstance(plain.target(plain.grids[0], 1.0), DenoisingModel)
    with pytest.raises(DecodingError, match="trained to read noise"):
        tokens_of(plain, sjd2(), 1.0, 1)


def test_inputs_before_the_noise_do_not_notice_it(noisy: ImageModel) -> None:
    target = noisy.target(noisy.grids[0], 2.0)
    assert isinstance(target, DenoisingModel)
    rng = torch.Generator().manual_seed(2)
    tokens = torch.randint(noisy.vocabulary, (2, 32), generator=rng)
    slots = torch.arange(32).expand(2, -1)
    visible = torch.arange(32) <= slots[..., None]
    levels = torch.zeros(2, 32)
    levels[0, 20:], levels[1, 5:] = 3.0, 20.0
    noise = torch.randn(2, 32, target.embedding_width, generator=rng)
    prompts = [noisy.encode_prompt("red heart")] * 2
    found = []
    for at in (torch.zeros(2, 32), levels):
        target.prefill(prompts, 32)
        found.append(target.forward_noised(tokens, slots, slots, visible, Noised(noise, at)))
    target.prefill(prompts, 32)
    assert torch.equal(found[0], target.forward(tokens, slots, slots, visible))
    assert torch.equal(found[1][0, :20], found[0][0, :20]) and torch.equal(found[1][1, :5], found[0][1, :5])
    assert not torch.equal(found[1][0, 20], found[0][0, 20])


def test_clean_embeddings_are_normalised(noisy: ImageModel) -> None:
    target = noisy.target(noisy.grids[0], 1.0)
    assert isinstance(target, DenoisingModel)
    rows = target.clean_embeddings(torch.arange(noisy.vocabulary))
    assert rows.dtype == torch.float32 and rows.shape == (noisy.vocabulary, target.embedding_width)
    torch.testing.assert_close(rows.mean(0), torch.zeros(rows.shape[1]), atol=5e-3, rtol=0)
    torch.testing.assert_close(rows.std(0), torch.ones(rows.shape[1]), atol=5e-3, rtol=0)


@pytest.mark.parametrize(
    "noise", [{"smallest": 3.0}, {"smallest": 9.0, "largest": 3.0}, {"smallest": True, "largest": 3.0}, [1]]
)
def test_garbled_metadata_is_refused(tmp_path: Path, noise: object) -> None:
    with pytest.raises(CheckpointError, match="usable|garbles"):
        loaded(with_denoiser(tmp_path / "garbled.safetensors", noise))


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="denoiser.outer.bias"):
        loaded(with_denoiser(tmp_path / "lacking.safetensors", leave_out="denoiser.outer.bias"))


def test_the_benchmark_leaves_out_what_the_weights_cannot_do(tmp_path: Path) -> None:
    options = argparse.Namespace(ablate=None, decoders=["sjd", "sjd2(steps=2)"])
    plain = load_subject(str(without_denoiser(tmp_path / "plain.safetensors")), prompts=["red heart"])
    noisy = load_subject(str(with_denoiser(tmp_path / "noisy.safetensors")), prompts=["red heart"])
    assert runnable(plain, options) == ["sjd"]
    assert runnable(noisy, options) == ["sjd", "sjd2(steps=2)"]
