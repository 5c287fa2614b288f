"""How much memory a run needs beside the weights, so that ComfyUI makes room for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..decoding import Decoder, TokenGrid
from ..decoding.lanes import Stream
from ..decoding.prediction import VerificationPrediction
from ..decoding.ratios import NeighbourhoodRatio
from ..decoding.rows import RowParallel
from ..decoding.tree import TreeWindow
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_transformer import Prompt
from .run_settings import RunSettings

LAW_COPIES = 8  # float32 tensors [L, window + 1, V] alive at once in a step
REMEMBERED_COPIES = 4  # and of each earlier step that prediction remembers


def run_bytes(model: ImageModel, prompts: Sequence[Prompt], decoder: Decoder, settings: RunSettings) -> int:
    """The cache, the laws of one step, and what the decoder keeps for itself."""
    kept = np.full((1, settings.grid.cells), -1)
    if settings.kept is not None:
        kept = settings.kept.flatten(1).numpy()
    slots = decoder.schedule.cache_slots(Stream(settings.grid, kept))
    cache = model.cache_bytes(prompts, settings.grid, settings.guidance, slots)
    laws = len(prompts) * law_rows(decoder, settings.grid) * model.vocabulary * 4
    return cache + law_copies(decoder) * laws + neighbour_bytes(decoder, model.vocabulary)


def law_rows(decoder: Decoder, grid: TokenGrid) -> int:
    """Laws that one step of an image compares, at most."""
    schedule, rows = decoder.schedule, 1
    if isinstance(schedule, RowParallel):
        rows = schedule.most_rows(grid)
    extra = schedule.extra_nodes if isinstance(schedule, TreeWindow) else 0
    return rows * (schedule.window + 1) + extra


def law_copies(decoder: Decoder) -> int:
    law = decoder.redrafter.law
    remembered = law.growth if isinstance(law, VerificationPrediction) else 0
    return LAW_COPIES + REMEMBERED_COPIES * remembered


def neighbour_bytes(decoder: Decoder, vocabulary: int) -> int:
    """The list of nearest codes of every code, int64."""
    ratio = getattr(decoder.verifier, "ratio", None)
    return 8 * vocabulary * min(ratio.neighbours, vocabulary) if isinstance(ratio, NeighbourhoodRatio) else 0
