"""Same picture on the trained model that ships: the part of `tools/measure/same_picture.py` that fits a test
run."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from jacobi_ar.decoding import Decoder, SamplingSettings, autoregressive, decode, run_to_end, same_picture
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from torch import Tensor

# No prompt: the laws are open, so drafts are wrong often. A prompt at guidance 2: two rows a picture.
PAIRS = {1.0: ("", [1, 2**63, 3, 4]), 2.0: ("red heart", [5, 6, 7, 8])}


@cache
def model(dtype: torch.dtype) -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=dtype)


def tokens(dtype: torch.dtype, decoder: Decoder, guidance: float, seeds: list[int]) -> Tensor:
    built_in, text = model(dtype), PAIRS[guidance][0]
    target = built_in.target(built_in.grids[0], guidance)
    prompts = [built_in.encode_prompt(text)] * len(seeds)
    with torch.inference_mode():
        return run_to_end(decode(target, prompts, decoder, SamplingSettings(), seeds)).tokens


@cache
def step_by_step(dtype: torch.dtype, guidance: float, padded: int = 0, count: int = 4) -> Tensor:
    return tokens(dtype, autoregressive(padded), guidance, PAIRS[guidance][1][:count])


@pytest.mark.parametrize("guidance", PAIRS)
@pytest.mark.parametrize("window", [2, 16, 31, 63])
def test_float64_equals_one_token_a_pass(window: int, guidance: float) -> None:
    seeds = PAIRS[guidance][1]
    together = tokens(torch.float64, same_picture(window, "uniform", fixed_shapes=False), guidance, seeds)
    assert torch.equal(together, step_by_step(torch.float64, guidance))


def test_float64_alone_equals_the_batch() -> None:
    alone = tokens(torch.float64, same_picture(31), 1.0, PAIRS[1.0][1][1:2])
    assert torch.equal(alone[0], step_by_step(torch.float64, 1.0)[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("window", "count"), [(31, 1), (8, 1), (31, 4)])
def test_same_shapes_are_bit_equal(dtype: torch.dtype, window: int, count: int) -> None:
    ours = tokens(dtype, same_picture(window), 2.0, PAIRS[2.0][1][:count])
    assert torch.equal(ours, step_by_step(dtype, 2.0, padded=31, count=count))
    if count == 1:
        open_laws = tokens(dtype, same_picture(window), 1.0, PAIRS[1.0][1][:1])
        assert torch.equal(open_laws, step_by_step(dtype, 1.0, padded=31, count=1))


def test_the_pictures_are_no_foregone_conclusion() -> None:
    """Four seeds, four pictures: the equalities above are not for want of choice."""
    pictures = step_by_step(torch.float64, 1.0)
    assert len({tuple(p) for p in pictures.flatten(1).tolist()}) == 4
