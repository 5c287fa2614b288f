"""How much memory a run needs beside the weights, so that ComfyUI makes room for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..decoding import Decoder
from ..decoding.lanes import Stream
from ..decoding.prediction import VerificationPrediction
from ..decoding.ratios import NeighbourhoodRatio
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_transformer import Prompt
from .run_settings import RunSettings
from .sizes import shown_bytes

LAW_COPIES = 8  # float32 tensors [L, window + 1, V] alive at once in a step
REMEMBERED_COPIES = 4  # and of each earlier step that prediction remembers


@dataclass(frozen=True)
class Estimate:
    """Bytes of a run at its peak, by what they are for."""

    weights: int
    cache: int
    laws: int  # of the tokens that one step compares, and what the decoder keeps for itself
    layers: int  # what the layers of the model hand on, and a weight that is cast for its product

    @property
    def run(self) -> int:
        """All but the weights."""
        return self.cache + self.laws + self.layers

    def line(self) -> str:
        parts = {"weights": self.weights, "cache": self.cache, "drafts": self.laws, "layers": self.layers}
        shown = ", ".join(f"{name} {shown_bytes(number)}" for name, number in parts.items())
        return f"memory: about {shown_bytes(self.weights + self.run)} ({shown})"


def estimate(
    model: ImageModel, prompts: Sequence[Prompt], decoder: Decoder, settings: RunSettings
) -> Estimate:
    """What a run of these prompts will take, one picture a prompt."""
    kept = np.full((1, settings.grid.cells), -1)
    if settings.kept is not None:
        kept = settings.kept.flatten(1).numpy()
    slots = decoder.schedule.cache_slots(Stream(settings.grid, kept))
    cache = model.cache_bytes(prompts, settings.grid, settings.guidance, slots)
    laws = len(prompts) * decoder.schedule.most_laws(settings.grid) * model.vocabulary * 4
    return Estimate(
        model.weight_bytes,
        cache,
        law_copies(decoder) * laws + neighbour_bytes(decoder, model.vocabulary),
        layer_bytes(model, prompts, decoder, settings),
    )


def layer_bytes(model: ImageModel, prompts: Sequence[Prompt], decoder: Decoder, settings: RunSettings) -> int:
    """Activations of the widest place, the feed-forward, for the prompt or for a step, whichever has more
    inputs; and the largest weight in the type of the arithmetic, where it is stored in another."""
    config = model.transformer.transformer.config
    rows = len(prompts) * (1 if settings.guidance == 1 else 2)
    prompt = model.prompt_columns(prompts, settings.grid, settings.guidance)
    inputs = max(prompt, decoder.schedule.most_laws(settings.grid))
    activations = rows * inputs * (3 * config.ffn + 4 * config.dim) * model.dtype.itemsize
    narrow = [w.numel() for w in model.transformer.parameters() if w.dtype.itemsize == 1]
    return activations + max(narrow, default=0) * model.dtype.itemsize


def law_copies(decoder: Decoder) -> int:
    law = decoder.redrafter.law
    remembered = law.growth if isinstance(law, VerificationPrediction) else 0
    return LAW_COPIES + REMEMBERED_COPIES * remembered


def neighbour_bytes(decoder: Decoder, vocabulary: int) -> int:
    """The list of nearest codes of every code, int64."""
    ratio = getattr(decoder.verifier, "ratio", None)
    return 8 * vocabulary * min(ratio.neighbours, vocabulary) if isinstance(ratio, NeighbourhoodRatio) else 0
