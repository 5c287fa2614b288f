"""A toy target that reads embeddings under noise, and is led astray by them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jacobi_ar.decoding import TokenGrid
from jacobi_ar.decoding.target import Noised
from torch import Tensor

from .toy import ToyTarget


class ToyDenoiser(ToyTarget):
    """An input under noise is read as the nearest token, and bends every law behind it by what is left of
    the noise: whoever commits by such a law has another distribution."""

    noise_range = (0.3, 3.0)
    embedding_width = 4

    def __init__(self, grid: TokenGrid, vocabulary: int, seed: int = 0, sharpness: float = 1.5) -> None:
        super().__init__(grid, vocabulary, seed, sharpness)
        generator = torch.Generator().manual_seed(seed + 1)
        self.rows = torch.randn(vocabulary, self.embedding_width, generator=generator)
        self.noisy = 0  # inputs fed under noise

    def prefill(self, prompts: Sequence[object], slots: int) -> Tensor:
        self.bends = torch.zeros(len(prompts), slots, self.vocabulary)
        return super().prefill(prompts, slots)

    def clean_embeddings(self, tokens: Tensor) -> Tensor:
        return self.rows[tokens]

    def forward(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        nothing = Noised(torch.zeros(*inputs.shape, self.embedding_width), torch.zeros(inputs.shape))
        return self.forward_noised(inputs, positions, slots, visible, nothing)

    def forward_noised(
        self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor, noised: Noised
    ) -> Tensor:
        under = noised.levels > 0
        self.noisy += int(under.sum())
        read = torch.cdist(noised.embeddings, self.rows).argmin(-1)
        bend = 2 * torch.tanh(noised.embeddings @ self.rows.T) * under[..., None]
        self.bends.scatter_(1, slots[..., None].expand_as(bend), bend)
        logits = super().forward(torch.where(under, read, inputs), positions, slots, visible)
        return logits + visible.float() @ self.bends[:, : visible.shape[-1]]

    def retain(self, images: Sequence[int]) -> None:
        self.bends = self.bends[list(images)]
        super().retain(images)
