"""What reads embeddings under noise for a transformer that was trained on tokens (SJD2, arXiv 2510.08994).

The paper fine-tunes the whole model. Here the model stays as it is, and a small network in front of it turns
an embedding under noise, and the level of the noise, into an input that the model understands. So whatever is
computed on tokens alone is the model's own to the last bit, and exact tests stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FREQUENCIES = 32
MEAN, SPREAD = 0, 1  # all rows of the statistics


@dataclass(frozen=True)
class DenoiserConfig:
    """Sizes, and the noise that it was trained with (standard deviations; clean embeddings have 1)."""

    dim: int
    hidden: int
    smallest: float
    largest: float


class Denoiser(nn.Module):
    def __init__(self, config: DenoiserConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.config = config
        self.inner = operations.Linear(config.dim + 2 * FREQUENCIES, config.hidden, bias=True, **factory)
        self.outer = operations.Linear(config.hidden, config.dim, bias=True, **factory)
        # Of the rows of the embedding table, in a module that the host can move.
        self.statistics = operations.Embedding(2, config.dim, **factory)

    def normalised(self, embeddings: Tensor) -> Tensor:
        """Rows of the embedding table [..., dim] -> mean 0 and spread 1 in every channel, float32."""
        mean, spread = self._statistics(embeddings.device)
        return (embeddings.float() - mean) / spread

    def forward(self, embeddings: Tensor, levels: Tensor) -> Tensor:
        """Normalised embeddings [..., dim] under noise of `levels` [...] above 0, both float32 -> inputs of
        the transformer [..., dim], in the type of the weights."""
        mean, spread = self._statistics(embeddings.device)
        scaled = embeddings * (1 + levels.square()).rsqrt()[..., None]
        features = torch.cat([scaled, _waves(levels)], -1).to(self.inner.weight.dtype)
        return self.outer(F.silu(self.inner(features))) * spread.to(features.dtype) + mean.to(features.dtype)

    def _statistics(self, device: torch.device) -> Tensor:
        return self.statistics(torch.arange(2, device=device)).float()


def _waves(levels: Tensor) -> Tensor:
    """[...] -> [..., 2 FREQUENCIES] sines and cosines of the logarithm of the level."""
    frequencies = torch.logspace(-1, 2, FREQUENCIES, device=levels.device)
    angles = levels.log()[..., None] / 4 * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)
