"""Where two decodes of one picture part, and whether rounding explains it."""

from __future__ import annotations

import numpy as np
import torch
from jacobi_ar.decoding.randomness import exponential_noise
from jacobi_ar.model_loaders.image_model import ImageModel
from torch import Tensor


def first_difference(ours: list[int], reference: list[int]) -> int | None:
    """First cell at which two pictures differ, None where they are equal."""
    return next((i for i, (a, b) in enumerate(zip(ours, reference, strict=True)) if a != b), None)


def logits_at(model: ImageModel, pair: tuple[str, int, float], prefix: list[int], windowed: bool) -> Tensor:
    """Guided logits [V] float64 after `prefix`, fed in one forward (a window's shape) or one token at a
    time."""
    text, _, guidance = pair
    target = model.target(model.grids[0], guidance)
    logits = target.prefill([model.encode_prompt(text)], slots=model.grids[0].length + 64)
    pieces = [range(len(prefix))] if windowed else [range(i, i + 1) for i in range(len(prefix))]
    for piece in pieces:
        if len(piece):
            slots = torch.tensor([list(piece)])
            inputs = torch.tensor([[prefix[i] for i in piece]])
            visible = torch.arange(piece[-1] + 1) <= slots[..., None]
            logits = target.forward(inputs, slots, slots, visible)[:, -1]
    return logits[0].double()


def rounding_at(
    exact: ImageModel,
    rounded: ImageModel,
    pair: tuple[str, int, float],
    reference: list[int],
    ours: list[int],
    cell: int,
) -> dict[str, float]:
    """How close the two candidates of a first difference are, and how far rounding moves them.

    `gap`: difference of their scores log q + Gumbel noise in float64. `moved`: how far the rounded model's
    two ways of computing (one token at a time, one window) have together moved that difference; a flip needs
    gap <= moved.
    """
    candidates = [reference[cell], ours[cell]]
    noise = -np.log(exponential_noise(pair[1], cell, exact.vocabulary)[candidates])
    with torch.inference_mode():
        truth, single, window = (
            logits_at(model, pair, reference[:cell], windowed)[candidates].numpy()
            for model, windowed in ((exact, False), (rounded, False), (rounded, True))
        )
    gap = abs(float(np.subtract(*(truth + noise))))
    moved = sum(abs(float(np.subtract(*(way - truth)))) for way in (single, window))
    return {"cell": cell, "gap": gap, "moved": moved}
