"""How much memory a run needs beside the weights, so that ComfyUI makes room for it."""

from __future__ import annotations

from collections.abc import Sequence

from ..decoding import Decoder
from ..decoding.prediction import VerificationPrediction
from ..decoding.ratios import NeighbourhoodRatio
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_transformer import Prompt
from .run_settings import RunSettings

LAW_COPIES = 8  # float32 tensors [B, window + 1, V] alive at once in a step
REMEMBERED_COPIES = 4  # and of each earlier step that prediction remembers


def run_bytes(model: ImageModel, prompts: Sequence[Prompt], decoder: Decoder, settings: RunSettings) -> int:
    """The cache, the laws of one step, and what the decoder keeps for itself."""
    slots = decoder.schedule.cache_slots(settings.grid, 1)
    law = len(prompts) * (decoder.schedule.window + 1) * model.vocabulary * 4
    cache = model.cache_bytes(len(prompts), settings.guidance, slots)
    return cache + law_copies(decoder) * law + neighbour_bytes(decoder, model.vocabulary)


def law_copies(decoder: Decoder) -> int:
    law = decoder.redrafter.law
    remembered = law.growth if isinstance(law, VerificationPrediction) else 0
    return LAW_COPIES + REMEMBERED_COPIES * remembered


def neighbour_bytes(decoder: Decoder, vocabulary: int) -> int:
    """The list of nearest codes of every code, int64."""
    ratio = getattr(decoder.verifier, "ratio", None)
    return 8 * vocabulary * min(ratio.neighbours, vocabulary) if isinstance(ratio, NeighbourhoodRatio) else 0
