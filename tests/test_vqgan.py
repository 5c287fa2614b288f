"""LlamaGen's VQGAN against the official classes, on a small random file in the official layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.image_tokenizer import ImageTokenizer
from jacobi_ar.model_loaders.load_tokenizer import load_image_tokenizer
from safetensors.torch import load_file, save_file
from torch import Tensor

GOLDEN = Path(__file__).parent / "golden"
FILE = GOLDEN / "llamagen_vq_tiny.pt"
EXPECTED = load_file(GOLDEN / "llamagen_vq_tiny_expected.safetensors")
IDS = EXPECTED["ids"].view(2, 4, 6)


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return torch.load(FILE, weights_only=True)["model"]


@pytest.fixture(scope="module")
def tokenizer() -> ImageTokenizer:
    return load_image_tokenizer(FILE, device="cpu")


def test_decoding_equals_the_official_class(tokenizer: ImageTokenizer) -> None:
    assert (tokenizer.kind, tokenizer.factor, tokenizer.codebook.shape) == ("llamagen", 2, (128, 8))
    torch.testing.assert_close(tokenizer.decode_raw(IDS), EXPECTED["decoded_raw"], rtol=1e-4, atol=2e-5)
    pictures = (EXPECTED["decoded_raw"].clamp(-1, 1) + 1) / 2
    torch.testing.assert_close(tokenizer.decode(IDS), pictures.permute(0, 2, 3, 1), rtol=1e-4, atol=2e-5)


def test_encoding_equals_the_official_class(tokenizer: ImageTokenizer) -> None:
    images = (EXPECTED["image_to_encode"].permute(0, 2, 3, 1) + 1) / 2
    assert torch.equal(tokenizer.encode(images).flatten(1), EXPECTED["encoded_ids"])


@pytest.mark.parametrize("container", ["raw", "ema", "wrapped", "safetensors"])
def test_every_container_gives_the_same(
    tmp_path: Path, weights: dict[str, Tensor], tokenizer: ImageTokenizer, container: str
) -> None:
    path = tmp_path / "anything.bin"  # names do not count, not even suffixes
    if container == "safetensors":
        save_file(weights, path)
    elif container == "wrapped":
        torch.save({"model": {f"module._orig_mod.{k}": v for k, v in weights.items()}, "steps": 7}, path)
    else:
        torch.save(weights if container == "raw" else {"ema": weights}, path)
    other = load_image_tokenizer(path, device="cpu")
    assert torch.equal(other.decode(IDS), tokenizer.decode(IDS))


def test_sizes_come_from_the_tensors(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    """One level fewer in the decoder and in the encoder: tokens of one pixel."""
    kept = {k: v for k, v in weights.items() if ".conv_blocks.1." not in k or k.startswith("encoder.")}
    kept = {k: v for k, v in kept.items() if "conv_blocks.0.upsample" not in k}
    kept = {k: v for k, v in kept.items() if not k.startswith(("encoder.", "quant_conv."))}
    kept["decoder.norm_out.weight"] = kept["decoder.norm_out.bias"] = torch.ones(64)
    kept["decoder.conv_out.weight"] = torch.zeros(3, 64, 3, 3)
    save_file({k: v.clone() for k, v in kept.items()}, tmp_path / "vq.safetensors")
    tokenizer = load_image_tokenizer(tmp_path / "vq.safetensors", device="cpu")
    assert tokenizer.factor == 1 and tokenizer.decode(IDS).shape == (2, 4, 6, 3)
    with pytest.raises(GridError, match="no encoder"):
        tokenizer.encode(torch.zeros(1, 4, 4, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(tokenizer: ImageTokenizer, dtype: torch.dtype) -> None:
    half = load_image_tokenizer(FILE, device="cpu", dtype=dtype)
    assert {p.dtype for p in half.module.parameters()} == {dtype}
    assert (half.decode(IDS) - tokenizer.decode(IDS)).abs().max() < 0.1
    assert half.encode(tokenizer.decode(IDS)).shape == IDS.shape


def test_a_file_that_does_not_fit_is_one_sentence(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    def loading(changed: dict[str, Tensor]) -> str:
        save_file({k: v.clone() for k, v in changed.items()}, tmp_path / "vq.safetensors")
        with pytest.raises(CheckpointError) as caught:
            load_image_tokenizer(tmp_path / "vq.safetensors", device="cpu")
        assert "vq.safetensors" in str(caught.value)
        return str(caught.value)

    without = {k: v for k, v in weights.items() if k != "decoder.mid.1.q.bias"}
    assert "1 tensors are missing: decoder.mid.1.q.bias" in loading(without)
    assert "1 tensors are not known: loss.scale" in loading(weights | {"loss.scale": torch.ones(1)})
    narrow = weights | {"decoder.mid.1.q.bias": torch.ones(3)}
    assert "decoder.mid.1.q.bias is (3,), expected (64,)" in loading(narrow)
    assert "33 channels" in loading(weights | {"decoder.conv_in.weight": torch.ones(33, 16, 3, 3)})
    assert "4 dimensions" in loading(weights | {"decoder.conv_out.weight": torch.ones(3)})
    assert "not an image tokenizer" in loading({"tok_embeddings.weight": torch.ones(3)})
