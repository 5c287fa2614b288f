"""Runs of a comparison that came to their end, kept for when the comparison itself did not.

ComfyUI throws away the outputs of a node that is cancelled or fails. What had been decoded by then waits
here, and a comparison with the same inputs goes on from it.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..decoding import Decoder, Trace
from ..model_loaders.image_transformer import Prompt
from .run_settings import RunSettings
from .values import ModelValue


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One decoder's picture."""

    tokens: Tensor  # [1, rows, cols] int64 on the CPU
    trace: Trace
    seconds: float  # of decoding alone


class FinishedRuns:
    """The latest `most` runs by what determined them. A few kilobytes each: tokens, not pictures."""

    def __init__(self, most: int = 128) -> None:
        self.most = most
        self._runs: OrderedDict[Hashable, FinishedRun] = OrderedDict()
        self._lock = threading.Lock()  # several nodes may run at once

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, key: Hashable) -> FinishedRun | None:
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)

    def keep(self, key: Hashable, run: FinishedRun) -> None:
        with self._lock:
            self._runs[key] = run
            self._runs.move_to_end(key)
            while len(self._runs) > self.most:
                self._runs.popitem(last=False)


def key_of(model: ModelValue, prompt: Prompt, decoder: Decoder, settings: RunSettings) -> Hashable:
    """Everything that a run's tokens depend on.

    The model and its image tokenizer (whose codebook some decoders compare by) are meant as these very
    objects, and are not kept alive by the key: what is loaded anew is decoded anew.
    """
    loaded, tokenizer = weakref.ref(model.loaded), weakref.ref(model.tokenizer)
    drawn = (settings.grid, settings.guidance, settings.sampling, settings.seeds)
    return (loaded, tokenizer, prompt.family, prompt.text, digest(prompt), decoder, drawn)


def digest(prompt: Prompt) -> bytes:
    """Of what the model reads: another text encoder makes another prompt of the same words."""
    summary = hashlib.sha256()
    for name, tensor in sorted(prompt.tensors.items()):
        summary.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        summary.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return summary.digest()
