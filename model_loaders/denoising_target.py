"""A run of a model that reads embeddings under noise too: decoding's `DenoisingModel`."""

from __future__ import annotations

import torch
from torch import Tensor

from ..decoding.grid import TokenGrid
from ..decoding.target import Noised
from .denoiser import Denoiser
from .image_transformer import ImageTransformer
from .target import TransformerTarget


class DenoisingTarget(TransformerTarget):
    def __init__(
        self,
        network: ImageTransformer,
        denoiser: Denoiser,
        grid: TokenGrid,
        guidance: float,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(network, grid, guidance, dtype, device)
        self._denoiser = denoiser
        self.noise_range = (denoiser.config.smallest, denoiser.config.largest)
        self.embedding_width = denoiser.config.dim

    @torch.no_grad()
    def clean_embeddings(self, tokens: Tensor) -> Tensor:
        return self._denoiser.normalised(self._network.embed(tokens))

    @torch.no_grad()
    def forward_noised(
        self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor, noised: Noised
    ) -> Tensor:
        under = noised.levels > 0
        # Levels of 0 have no logarithm; what comes of them is not used.
        read = self._denoiser(noised.embeddings, noised.levels.where(under, self.noise_range[0]))
        x = torch.where(under[..., None], read.to(self._dtype), self._embed(inputs))
        return self._forward(x, positions, slots, visible)
