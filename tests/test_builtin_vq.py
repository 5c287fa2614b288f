"""The built-in image tokenizer against its plain reading, there and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.image_tokenizer import ImageTokenizer
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from safetensors import safe_open
from safetensors.torch import load_file, save_file

# What a plain reading of the file, without modules, computed; large pictures at every fourth pixel.
EXPECTED = load_file(Path(__file__).parent / "golden" / "builtin_vq_expected.safetensors")
PICTURES = EXPECTED["tokens"].long()  # [2, 16, 16]: a heart and a flag, sampled from the built-in model


@pytest.fixture(scope="module")
def tokenizer() -> ImageTokenizer:
    return load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu")


def psnr(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(-10 * torch.log10((a - b).square().mean()))


def test_what_it_is(tokenizer: ImageTokenizer) -> None:
    assert (tokenizer.kind, tokenizer.factor, tokenizer.vocabulary) == ("built-in", 8, 1024)
    torch.testing.assert_close(tokenizer.codebook.norm(dim=1), torch.ones(1024))


def test_decoding_equals_the_plain_reading(tokenizer: ImageTokenizer) -> None:
    raw = tokenizer.decode_raw(PICTURES)
    assert raw.shape == (2, 3, 128, 128)
    torch.testing.assert_close(raw[..., ::4, ::4], EXPECTED["decoded_raw"], rtol=1e-4, atol=1e-5)
    small = tokenizer.decode_raw(EXPECTED["small_tokens"].long())  # 3 x 5: not square
    torch.testing.assert_close(small, EXPECTED["small_decoded_raw"], rtol=1e-4, atol=1e-5)


def test_pictures_are_in_range_and_do_not_depend_on_the_batch(tokenizer: ImageTokenizer) -> None:
    pictures = tokenizer.decode(PICTURES)
    assert pictures.shape == (2, 128, 128, 3) and pictures.dtype == torch.float32
    assert pictures.min() >= 0 and pictures.max() <= 1
    assert torch.equal(pictures[1:], tokenizer.decode(PICTURES[1:]))


def test_a_picture_survives_encoding_and_decoding(tokenizer: ImageTokenizer) -> None:
    pictures = tokenizer.decode(PICTURES)
    tokens = tokenizer.encode(pictures)
    assert tokens.shape == PICTURES.shape and tokens.dtype == torch.int64
    # 38 dB and more; with the stride-2 convolutions padded on one side only it is 12.
    assert all(psnr(a, b) > 30 for a, b in zip(pictures, tokenizer.decode(tokens), strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_take_float32_pictures(tokenizer: ImageTokenizer, dtype: torch.dtype) -> None:
    half = load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu", dtype=dtype)
    tokens = PICTURES[:1, 4:12, 4:12]  # a part: half precision is slow on CPUs
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
        (torch.tensor([[[0, 1], [2, 1024]]]), r"token 1024 \(image 0, row 1, column 1\).*0..1023; 1 such"),
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
