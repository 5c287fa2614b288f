"""In forwards of one shape a token's logits have the same bits wherever it lies in the window.

The same-picture promise rests on it: step-by-step decoding in a decoder's own shapes makes that decoder's
very picture. Measured on x86 CPUs, float32 and bfloat16, for windows padded to a multiple of 32 inputs.
"""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.model_loaders.image_model import ImageModel
from torch import Tensor

from .toy_families import load_toy

SLOTS = 320  # 256 cells and room for padding
TEXTS = ["red heart", "dog", "", "flag japan"]


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Two more for what the built-in model has not: norms over heads, positions of each row's own, an MLP for
# codes.
TOYS = ["built-in", "Lumina-mGPT", "Janus"]


@pytest.fixture(scope="module", params=[f"{toy}, {dtype}" for toy in TOYS for dtype in DTYPES])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ImageModel:
    toy, dtype = request.param.split(", ")
    return load_toy(toy, tmp_path_factory.mktemp("toy"), DTYPES[dtype])


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


def some_tokens(model: ImageModel, images: int) -> Tensor:
    draw = torch.Generator().manual_seed(7)
    return torch.randint(model.vocabulary, (images, SLOTS), generator=draw)


@pytest.mark.parametrize("width, images", [(32, 1), (32, 4), (64, 1)])
def test_a_token_has_the_same_bits_at_every_offset(model: ImageModel, width: int, images: int) -> None:
    texts, tokens, cells = TEXTS[:images], some_tokens(model, images), 32
    one_by_one = torch.cat(run(model, texts, tokens, width, 1, list(range(cells))), dim=1)
    starts = [0, 3, 8, 21]
    for start, window in zip(starts, run(model, texts, tokens, width, width, starts), strict=True):
        assert torch.equal(window[:, : cells - start], one_by_one[:, start : start + width])


def test_an_image_of_a_batch_has_the_bits_of_the_image_alone(model: ImageModel) -> None:
    tokens = some_tokens(model, 4)
    together = run(model, TEXTS, tokens, 32, 32, [0, 32])
    for image, text in enumerate(TEXTS):
        alone = run(model, [text], tokens[image : image + 1], 32, 32, [0, 32])
        for ours, theirs in zip(alone, together, strict=True):
            assert torch.equal(ours[0], theirs[image])
