"""Weights in float8: what is exact, how far the rest is off, and that decoding keeps its promise."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from jacobi_ar.decoding import SamplingSettings, autoregressive, decode, same_picture
from jacobi_ar.decoding.loop import run_to_end
from jacobi_ar.model_loaders.checkpoint import open_checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.float8 import float8_operations, from_float8, to_float8
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from safetensors.torch import load_file, save_file

OPERATIONS = float8_operations(torch.nn)


def builtin(dtype: torch.dtype, path: Path = BUILTIN_MODEL, narrow: bool = True) -> ImageModel:
    operations = OPERATIONS if narrow else torch.nn
    return load_image_model(path, device="cpu", dtype=dtype, operations=operations)


def test_each_number_is_near_and_scales_are_powers_of_two() -> None:
    weight = (
        torch.randn(64, 300, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 6, 64)[:, None]
    )
    narrow, scale = to_float8(weight)
    assert narrow.dtype == torch.float8_e4m3fn and torch.equal(
        torch.frexp(scale).mantissa, torch.full((64,), 0.5)
    )
    back = from_float8(narrow, scale)
    # Three bits of mantissa: off by 1/16 at most, below the normal range by half a step of 2^-9.
    assert bool(((back - weight).abs() <= weight.abs() / 16 + scale[:, None] * 2.0**-10).all())
    most = narrow.float().abs().amax(1)
    assert bool(((most >= 240) & (most <= 448)).all())
    again, same = to_float8(back)
    assert torch.equal(again.view(torch.uint8), narrow.view(torch.uint8)) and torch.equal(same, scale)


@pytest.mark.parametrize("value", [0.0, 448.0, 464.0, 464.1, 480.0, 1e-30, 3e38, 0.875, 224.0])
def test_rows_at_the_edges(value: float) -> None:
    weight = torch.full((1, 2), value)
    narrow, scale = to_float8(weight)
    assert torch.isfinite(narrow.float()).all()
    assert torch.allclose(from_float8(narrow, scale), weight, rtol=1 / 16, atol=1e-32)


def test_what_is_in_float8_already_comes_through_unchanged() -> None:
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    every = every[torch.isfinite(every.float())].reshape(2, -1)  # all numbers that there are
    for scale in (torch.tensor([1.0]), torch.tensor([[2.0**-7], [2.0**9]])):
        exact = from_float8(every, scale)
        assert torch.equal(exact, exact.bfloat16().float())
        assert torch.equal(from_float8(*to_float8(exact)), exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_product_is_that_of_the_weight_as_it_was_rounded(dtype: torch.dtype) -> None:
    layer = OPERATIONS.BlockLinear(48, 32, device="meta")
    weight = torch.randn(32, 48, generator=torch.Generator().manual_seed(1))
    narrow, scale = to_float8(weight)
    layer.weight, layer.scale = (torch.nn.Parameter(t, requires_grad=False) for t in (narrow, scale))
    x = torch.randn(5, 48, generator=torch.Generator().manual_seed(2)).to(dtype)
    exact = from_float8(narrow, scale).to(dtype)
    assert torch.equal(layer(x), torch.nn.functional.linear(x, exact))
    with pytest.raises(ValueError, match="bias"):
        OPERATIONS.BlockLinear(48, 32, bias=True)


def test_the_built_in_model_is_half_as_large_and_nearly_the_same() -> None:
    whole, half = builtin(torch.bfloat16, narrow=False), builtin(torch.bfloat16)
    blocks = sum(
        p.numel() for name, p in whole.transformer.named_parameters() if p.ndim == 2 and "layers." in name
    )
    saved = whole.weight_bytes - half.weight_bytes
    assert 0.98 * blocks < saved < blocks
    kinds = {name: p.dtype for name, p in half.transformer.named_parameters()}
    assert (
        kinds["output.weight"]
        == kinds["tok_embeddings.weight"]
        == kinds["transformer.norm.weight"]
        == torch.bfloat16
    )

    exact = builtin(torch.float32, narrow=False)
    prompt = exact.encode_prompt("red heart")
    logits = [m.target(m.grids[0], 1.5).prefill([prompt], 256).float() for m in (exact, half, whole)]
    spread = logits[0].std()
    assert (logits[1] - logits[0]).pow(2).mean().sqrt() < 0.2 * spread
    assert (logits[2] - logits[0]).pow(2).mean().sqrt() < 0.02 * spread  # bfloat16 alone, as a yardstick


def test_same_picture_holds_for_the_rounded_model() -> None:
    model = builtin(torch.float32)
    prompt = model.encode_prompt("octopus")

    def tokens(decoder) -> torch.Tensor:
        target = model.target(model.grids[0], 1.5)
        return run_to_end(decode(target, [prompt], decoder, SamplingSettings(), [3])).tokens

    assert torch.equal(tokens(autoregressive()), tokens(same_picture(15)))


@pytest.mark.parametrize("key", ["weight_scale", "scale_weight", None])
def test_files_in_float8_that_people_have(tmp_path: Path, key: str | None) -> None:
    """With one scale a tensor (ComfyUI's "scaled fp8"), one a row, or a plain cast."""
    weights = load_file(BUILTIN_MODEL)
    expected, stored = {}, {}
    for name, value in weights.items():
        if ".attention." in name or ".feed_forward." in name:
            scale = torch.tensor(0.37) if key else torch.ones(())
            if key == "weight_scale":
                scale = value.float().abs().amax(1, keepdim=True) / 448
            narrow = (value.float() / scale).to(torch.float8_e4m3fn)
            stored[name], expected[name] = narrow, narrow.float() * scale
            if key:
                stored[f"{name.removesuffix('weight')}{key}"] = scale
                stored[f"{name.removesuffix('weight')}scale_input"] = torch.ones(())
        else:
            stored[name] = expected[name] = value
    if key == "scale_weight":
        stored["scaled_fp8"] = torch.zeros(2, dtype=torch.float8_e4m3fn)
    metadata = open_checkpoint(BUILTIN_MODEL).metadata
    save_file({n: v.contiguous() for n, v in stored.items()}, tmp_path / "narrow.safetensors", metadata)
    save_file({n: v.contiguous() for n, v in expected.items()}, tmp_path / "wide.safetensors", metadata)
    narrow = builtin(torch.float32, tmp_path / "narrow.safetensors", narrow=False).transformer.state_dict()
    wide = builtin(torch.float32, tmp_path / "wide.safetensors", narrow=False).transformer.state_dict()
    assert all(torch.equal(narrow[name], wide[name]) for name in wide)
    if key is None:  # a plain cast is taken over as it is
        again = builtin(torch.bfloat16, tmp_path / "narrow.safetensors").transformer.state_dict()
        for name in (n.removesuffix(".scale") for n in again if n.endswith(".scale")):
            assert torch.equal(
                from_float8(again[f"{name}.weight"], again[f"{name}.scale"]), wide[f"{name}.weight"]
            )


def test_scales_that_fit_no_row_and_weights_that_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"x.weight": torch.ones(4, 2).to(torch.float8_e4m3fn), "x.weight_scale": torch.ones(3)}, path)
    with pytest.raises(CheckpointError, match="no scale for each row"):
        open_checkpoint(path)
    weights = load_file(BUILTIN_MODEL)
    weights["layers.0.attention.wo.weight"] = weights["layers.0.attention.wo.weight"].clone().fill_(torch.nan)
    save_file(weights, path, open_checkpoint(BUILTIN_MODEL).metadata)
    with pytest.raises(
        CheckpointError, match="layers.0.attention.wo.weight holds values that are not numbers"
    ):
        builtin(torch.bfloat16, path)
