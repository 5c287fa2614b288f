"""What to do when a run does not fit: three things that help most here, with what each saves."""

from __future__ import annotations

import torch

from ..decoding import Decoder, TokenGrid
from ..model_loaders.image_model import ImageModel
from .run_memory import Estimate
from .run_settings import RunSettings
from .sizes import shown_bytes

MOST = 3


def advice(
    model: ImageModel, decoder: Decoder, settings: RunSettings, needed: Estimate, free: int, gpu: bool
) -> str:
    """Sentences for the error of one picture that did not fit. `free` is what there was beside the weights,
    `gpu` whether the model computes elsewhere than in the computer's own memory."""
    actions = sorted(savings(model, decoder, settings, needed, gpu), key=lambda action: -action[1])[:MOST]
    listed = "; ".join(
        f"{n}) {text} (saves about {shown_bytes(saved)})" for n, (text, saved) in enumerate(actions, 1)
    )
    return (
        f"One picture needs about {shown_bytes(needed.run)} beside {shown_bytes(needed.weights)} of weights, "
        f"and {shown_bytes(free)} were free for it. What helps: {listed}."
    )


def savings(
    model: ImageModel, decoder: Decoder, settings: RunSettings, needed: Estimate, gpu: bool
) -> list[tuple[str, int]]:
    """Every action that applies, with the bytes that it saves."""
    found = []
    kinds = {weight.dtype for weight in model.transformer.parameters()}
    if model.dtype == torch.float32:
        saved = (needed.weights + needed.cache + needed.layers) // 2
        found.append(("load the model in bfloat16", saved))
    if torch.float8_e4m3fn not in kinds:
        layers = sum(w.numel() for w in model.transformer.transformer.layers.parameters() if w.ndim == 2)
        found.append(("load it with float8 weights", layers * (model.dtype.itemsize - 1)))
    if settings.guidance != 1:
        found.append(("set guidance to 1", (needed.cache + needed.layers) // 2))
    window = decoder.schedule.window
    if window > 1:
        saved = needed.laws * (window - window // 2) // (window + 1)
        found.append((f"choose a window of {window // 2} instead of {window}", saved))
    smaller = [grid for grid in model.grids if grid.cells < settings.grid.cells]
    if smaller:
        grid: TokenGrid = max(smaller, key=lambda grid: grid.cells)
        saved = needed.cache * (settings.grid.cells - grid.cells) // settings.grid.cells
        now = f"{settings.grid.rows} x {settings.grid.cols}"
        found.append((f"make {grid.rows} x {grid.cols} tokens instead of {now}", saved))
    if gpu:
        saved = needed.weights // 2
        found.append(("start ComfyUI with --lowvram, which keeps weights outside the GPU", saved))
    return found
