"""The built-in image tokenizer against its plain reading, there and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.image_tokenizer import ImageTokenizer
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

EXAMPLE = Path(__file__).parents[1] / "nodes" / "example_tokens.safetensors"
CODES = 4096


@pytest.fixture(scope="module")
def tokenizer() -> ImageTokenizer:
    return load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu")


@pytest.fixture(scope="module")
def grids() -> Tensor:
    """Tokens [2, 16, 16]: the picture that the package brings as an example, and the same from right to
    left."""
    example = load_file(EXAMPLE)["tokens"].long()
    return torch.cat([example, example.flip(2)])


def plain(side: str, x: Tensor) -> Tensor:
    """A plain reading of one half of the file, in float64, without modules."""
    with safe_open(BUILTIN_TOKENIZER, "pt") as file:
        stages = json.loads(file.metadata()[side])
    weights = {name: tensor.double() for name, tensor in load_file(BUILTIN_TOKENIZER).items()}

    def conv(name: str, x: Tensor, **options: int) -> Tensor:
        return F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], **options)

    def norm(name: str, x: Tensor) -> Tensor:
        grouped = x.unflatten(1, (8, -1))
        mean = grouped.mean((2, 3, 4), keepdim=True)
        spread = grouped.var((2, 3, 4), keepdim=True, unbiased=False)
        x = ((grouped - mean) / (spread + 1e-5).sqrt()).flatten(1, 2)
        return x * weights[f"{name}.weight"][:, None, None] + weights[f"{name}.bias"][:, None, None]

    def residual(name: str, x: Tensor) -> Tensor:
        y = x
        for half in "12":
            y = norm(f"{name}.norm{half}", y)
            y = conv(f"{name}.conv{half}", y * y.sigmoid(), padding=1)
        return x + y

    run: dict[str, Callable[[str, Tensor], Tensor]] = {
        "conv": lambda name, x: conv(name, x, padding=1),
        "conv2": lambda name, x: conv(name, x, padding=1, stride=2),
        "conv1x1": conv,
        "res": residual,
        "norm": norm,
        "silu": lambda _, x: x * x.sigmoid(),
        "up": lambda _, x: x.repeat_interleave(2, 2).repeat_interleave(2, 3),
        "shuffle": lambda _, x: F.pixel_shuffle(x, 2),
        "unshuffle": lambda _, x: F.pixel_unshuffle(x, 2),
    }
    for number, stage in enumerate(stages):
        x = run[stage](f"{side}.{number}", x)
    return x


def plain_codebook() -> Tensor:
    codes = load_file(BUILTIN_TOKENIZER)["codebook"].double()
    return codes / codes.norm(dim=-1, keepdim=True)


def plain_pixels(tokens: Tensor) -> Tensor:
    return plain("decoder", plain_codebook()[tokens].permute(0, 3, 1, 2))


def psnr(a: Tensor, b: Tensor) -> float:
    return float(-10 * torch.log10((a - b).square().mean()))


def test_what_it_is(tokenizer: ImageTokenizer) -> None:
    assert (tokenizer.kind, tokenizer.factor, tokenizer.vocabulary) == ("built-in", 8, CODES)
    torch.testing.assert_close(tokenizer.codebook.norm(dim=1), torch.ones(CODES))


@pytest.mark.parametrize("part", [slice(None), slice(3, 6)])  # the second is not square
def test_decoding_equals_a_plain_reading(tokenizer: ImageTokenizer, grids: Tensor, part: slice) -> None:
    tokens = grids[:, part]
    raw = tokenizer.decode_raw(tokens)
    assert raw.shape == (2, 3, 8 * tokens.shape[1], 128)
    torch.testing.assert_close(raw.double(), plain_pixels(tokens), rtol=1e-4, atol=2e-5)


def test_encoding_equals_a_plain_reading(tokenizer: ImageTokenizer, grids: Tensor) -> None:
    pictures = tokenizer.decode(grids)
    codes = plain("encoder", pictures.double().permute(0, 3, 1, 2) * 2 - 1).permute(0, 2, 3, 1)
    nearest = (codes @ plain_codebook().T).argmax(-1)
    assert torch.equal(tokenizer.encode(pictures), nearest)


def test_pictures_are_in_range_and_do_not_depend_on_the_batch(
    tokenizer: ImageTokenizer, grids: Tensor
) -> None:
    pictures = tokenizer.decode(grids)
    assert pictures.shape == (2, 128, 128, 3) and pictures.dtype == torch.float32
    assert pictures.min() >= 0 and pictures.max() <= 1
    assert torch.equal(pictures[1:], tokenizer.decode(grids[1:]))


def test_a_picture_survives_encoding_and_decoding(tokenizer: ImageTokenizer, grids: Tensor) -> None:
    pictures = tokenizer.decode(grids[:1])
    tokens = tokenizer.encode(pictures)
    assert tokens.shape == (1, 16, 16) and tokens.dtype == torch.int64
    # The first weights with stride-2 convolutions padded on one side only: 12 dB.
    assert psnr(pictures, tokenizer.decode(tokens)) > 30


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_take_float32_pictures(
    tokenizer: ImageTokenizer, grids: Tensor, dtype: torch.dtype
) -> None:
    half = load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu", dtype=dtype)
    tokens = grids[:1, 4:12, 4:12]  # a part: half precision is slow on CPUs
    pictures, halved = tokenizer.decode(tokens), half.decode(tokens)
    assert halved.dtype == torch.float32 and (halved - pictures).abs().max() < 0.02
    for given in (pictures, pictures.to(dtype)):
        assert (half.encode(given) == tokenizer.encode(pictures)).float().mean() > 0.9


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.zeros(16, 16, dtype=torch.int64), "must be"),
        (torch.zeros(1, 256, dtype=torch.int64), "must be"),
        (torch.zeros(0, 16, 16, dtype=torch.int64), "not empty"),
        (torch.zeros(1, 2, 2), "whole numbers"),
        (torch.tensor([[[0, 1], [2, CODES]]]), r"token 4096 \(image 0, row 1, column 1\).*0..4095; 1 such"),
        (torch.tensor([[[0, -1], [-1, -1]]]), r"not all filled"),
    ],
)
def test_wrong_tokens(tokenizer: ImageTokenizer, tokens: torch.Tensor, message: str) -> None:
    with pytest.raises(GridError, match=message):
        tokenizer.decode(tokens)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(1, 128, 100, 3), "100 x 128 pixels does not divide.*8 x 8.*to 96 x 128"),
        (torch.zeros(1, 4, 4, 3), "to 8 x 8"),
        (torch.zeros(1, 3, 128, 128), "must be"),
        (torch.zeros(128, 128, 3), "must be"),
        (torch.full((1, 8, 8, 3), float("nan")), "NaN"),
    ],
)
def test_wrong_pictures(tokenizer: ImageTokenizer, images: torch.Tensor, message: str) -> None:
    with pytest.raises(GridError, match=message):
        tokenizer.encode(images)


@pytest.mark.parametrize("stages", ["", "{}", '["conv", "magic"]', '[["conv"]]', '["conv"]', '"conv"', "[1]"])
def test_damaged_stages(tmp_path: Path, stages: str) -> None:
    with safe_open(BUILTIN_TOKENIZER, "pt") as file:
        metadata = dict(file.metadata()) | {"decoder": stages}
    save_file(load_file(BUILTIN_TOKENIZER), tmp_path / "vq.safetensors", metadata)
    with pytest.raises(CheckpointError, match="stage|not known"):
        load_image_tokenizer(tmp_path / "vq.safetensors", device="cpu")
