"""The seam between decoders and models: what a decoder may ask of the target model.

Shape letters of the package: `B` images, `N` inputs of one forward, `W` window (drafts), `L` lanes, `S`
stream positions, `K` cache slots that a query may be allowed to see, `V` codebook size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from .grid import TokenGrid


class TargetModel(Protocol):
    """An autoregressive image model with its cache, for one run.

    The cache is indexed by *slot*. Slot s of an image holds stream position s, once that is fixed; slots from
    `grid.length` on are scratch, and so are, for the branches of a tree, slots that no position has reached:
    rotary positions go by `positions`, never by the slot. Feeding a slot again overwrites it, which is all
    that rollback needs. The prompt lives in front of slot 0, is always visible, and is the target's own
    business, as is guidance: whoever decodes sees guided logits.
    """

    grid: TokenGrid
    vocabulary: int  # codebook size V; input ids from V on are structure tokens
    device: torch.device

    def prefill(self, prompts: Sequence[Any], slots: int) -> Tensor:
        """Start a run of B = len(prompts) images with `slots` cache slots each; guided logits [B, V] of cell
        0."""

    def forward(
        self,
        inputs: Tensor,  # [B, N] int64 input ids
        positions: Tensor,  # [B, N] int64 stream positions, any order, gaps allowed, 0 .. grid.length - 1
        slots: Tensor,  # [B, N] int64 cache slots to write, distinct within an image
        visible: Tensor,  # [B, N, K] bool: which of the first K slots each query sees, its own included
    ) -> Tensor:
        """Guided logits [B, N, V], float32 (float64 for a float64 model), of the token that follows each
        input."""

    def move(self, source: Tensor, destination: Tensor) -> None:
        """Copy cache slots `source` to `destination` ([B, M] int64), for the winning branch of a tree."""

    def retain(self, images: Sequence[int]) -> None:
        """Go on with these images of the present batch only (ascending); their caches keep their contents."""


class Noised(NamedTuple):
    """Inputs that are fed as embeddings under noise, [L, W] or [B, N] of them."""

    embeddings: Tensor  # [..., E], clean ones have mean 0 and spread 1 in every channel
    levels: Tensor  # [...], standard deviation of the noise in them; 0 where the token itself is fed


@runtime_checkable
class DenoisingModel(TargetModel, Protocol):
    """A target model that also reads embeddings under noise.

    Where no input that a query sees is under noise, its law is the model's own.
    """

    noise_range: tuple[float, float]  # smallest and largest level that it was trained with
    embedding_width: int  # E

    def clean_embeddings(self, tokens: Tensor) -> Tensor:
        """Codebook indices [...] -> [..., E] float32, normalised: see `Noised`."""

    def forward_noised(
        self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor, noised: Noised
    ) -> Tensor:
        """As `forward`; inputs whose level is above 0 are read from `noised` [B, N], not from `inputs`."""
