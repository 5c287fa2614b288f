"""In forwards of one shape a token's logits have the same bits wherever it lies in the window.

The same-picture promise rests on it: step-by-step decoding in a decoder's own shapes makes that decoder's
very picture. Measured on x86 CPUs, float32 and bfloat16, for windows padded to a multiple of 32 inputs.
"""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from torch import Tensor

SLOTS = 320  # 256 cells and room for padding
TEXTS = ["red heart", "dog", "", "flag japan"]


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def model(request: pytest.FixtureRequest) -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=request.param)


def run(
    model: ImageModel, texts: list[str], tokens: Tensor, width: int, real: int, starts: list[int]
) -> list[Tensor]:
    """Feed windows of `real` tokens, padded to `width` inputs, from each of `starts`: logits [B, real, V]."""
    target = model.target(model.grids[0], 1.5)
    target.prefill([model.encode_prompt(text) for text in texts], SLOTS)
    logits = []
    for start in starts:
        slots = torch.cat([torch.arange(start, start + real), torch.arange(SLOTS - width + real, SLOTS)])
        slots = slots.expand(len(texts), -1)
        visible = torch.arange(SLOTS) <= slots[..., None]
        logits.append(target.forward(tokens[:, slots[0]], slots.clamp(max=255), slots, visible)[:, :real])
    return logits


def some_tokens(images: int) -> Tensor:
    return torch.randint(1024, (images, SLOTS), generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("width, images", [(32, 1), (32, 4), (64, 1)])
def test_a_token_has_the_same_bits_at_every_offset(model: ImageModel, width: int, images: int) -> None:
    texts, tokens, cells = TEXTS[:images], some_tokens(images), 32
    one_by_one = torch.cat(run(model, texts, tokens, width, 1, list(range(cells))), dim=1)
    starts = [0, 3, 8, 21]
    for start, window in zip(starts, run(model, texts, tokens, width, width, starts), strict=True):
        assert torch.equal(window[:, : cells - start], one_by_one[:, start : start + width])


def test_an_image_of_a_batch_has_the_bits_of_the_image_alone(model: ImageModel) -> None:
    tokens = some_tokens(4)
    together = run(model, TEXTS, tokens, 32, 32, [0, 32])
    for image, text in enumerate(TEXTS):
        alone = run(model, [text], tokens[image : image + 1], 32, 32, [0, 32])
        for ours, theirs in zip(alone, together, strict=True):
            assert torch.equal(ours[0], theirs[image])
