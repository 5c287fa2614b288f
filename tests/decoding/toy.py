"""A target model whose joint law can be written out, and which refuses to look at what it must not see."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from jacobi_ar.decoding import SamplingSettings, TokenGrid
from jacobi_ar.decoding.sampling import warp
from torch import Tensor


class ToyTarget:
    """Logits are a random table over (visible prefix): every token depends on all tokens before it.

    The prefix is read off the cache slots that the query may see. A query that sees a slot never written, or
    that does not see exactly the slots up to its own, meets NaN in the table: the decode fails.
    """

    device = torch.device("cpu")

    def __init__(self, grid: TokenGrid, vocabulary: int, seed: int = 0, sharpness: float = 1.5) -> None:
        self.grid, self.vocabulary = grid, vocabulary
        self.base = vocabulary + len(grid.row_end) + 1  # digit 0 of a prefix code: slot not seen
        length = grid.length
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.full((self.base**length, vocabulary), torch.nan)
        self.powers = self.base ** torch.arange(length)
        for position in range(length):
            codes = self._prefix_codes(position)
            self.table[codes] = sharpness * torch.randn(len(codes), vocabulary, generator=generator)
        self.forwards = 0

    def _prefix_codes(self, position: int) -> Tensor:
        structure = self.grid.structure()
        choices = [[int(s)] if s >= 0 else list(range(self.vocabulary)) for s in structure[:position]]
        prefixes = list(product(*choices))
        rows = torch.tensor(prefixes, dtype=torch.int64).view(len(prefixes), position)
        return ((rows + 1) * self.powers[:position]).sum(-1)

    def prefill(self, prompts: Sequence[object], slots: int) -> Tensor:
        self.cache = torch.full((len(prompts), slots), -1)
        self.forwards += 1
        return self.table[torch.zeros(len(prompts), dtype=torch.int64)]

    def feed(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> None:
        """Check what a forward is given, write its inputs to their slots."""
        self.forwards += 1
        assert inputs.shape == positions.shape == slots.shape == visible.shape[:2]
        assert int(positions.max()) < self.grid.length and int(positions.min()) >= 0
        assert all(len(set(row)) == len(row) for row in slots.tolist()), "an image writes a slot twice"
        self.cache.scatter_(1, slots, inputs)

    def forward(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        self.feed(inputs, positions, slots, visible)
        length = self.grid.length
        extent = min(visible.shape[-1], length)
        seen, cached = visible[..., :extent], self.cache[:, None, :extent]
        real = slots < length  # padding behind the stream, or in scratch, may see anything
        assert not (seen & (cached < 0) & real[..., None]).any(), "a query sees a slot that was never written"
        codes = (torch.where(seen, cached + 1, 0) * self.powers[:extent]).sum(-1)
        logits = self.table[codes.clamp(max=len(self.table) - 1)]
        return torch.where((real & (slots < length - 1))[..., None], logits, torch.zeros(()))

    def move(self, source: Tensor, destination: Tensor) -> None:
        self.cache.scatter_(1, destination, self.cache.gather(1, source))

    def retain(self, images: Sequence[int]) -> None:
        self.cache = self.cache[list(images)]

    def joint_law(self, sampling: SamplingSettings) -> np.ndarray:
        """Probability of each picture, indexed by its tokens read as a number in base V, first token
        leading."""
        structure = self.grid.structure()
        law = {(): 1.0}
        for position in range(self.grid.length):
            grown: dict[tuple[int, ...], float] = {}
            for prefix, mass in law.items():
                if structure[position] >= 0:
                    grown[(*prefix, int(structure[position]))] = mass
                    continue
                code = sum((token + 1) * int(self.powers[i]) for i, token in enumerate(prefix))
                for token, q in enumerate(warp(self.table[code].double(), sampling).tolist()):
                    grown[(*prefix, token)] = mass * q
            law = grown
        cells = self.grid.cell_positions()
        joint = np.zeros(self.vocabulary**self.grid.cells)
        for tokens, mass in law.items():
            joint[picture_number(np.array(tokens)[cells][None], self.vocabulary)[0]] += mass
        return joint


def picture_number(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Pictures [n, cells] as numbers in base V: [n] int64."""
    powers = vocabulary ** np.arange(tokens.shape[1] - 1, -1, -1)
    return (tokens * powers).sum(1)
