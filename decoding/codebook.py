"""The image tokenizer's codebook, for decoders that ask which codes look alike."""

from __future__ import annotations

import torch
from torch import Tensor


class Codebook:
    """Codebook rows, and the nearest codes of each code, made once and kept."""

    def __init__(
        self,
        rows: Tensor,  # [V, C] float32, as the tokenizer uses them (normalised where it normalises)
    ) -> None:
        self.rows = rows
        self._nearest: Tensor | None = None
        self._elsewhere: Codebook | None = None

    def on(self, device: torch.device) -> Codebook:
        """This codebook on a device; itself where it is there already, neighbours and all."""
        if self.rows.device == device:
            return self
        if self._elsewhere is None or self._elsewhere.rows.device != device:
            self._elsewhere = Codebook(self.rows.to(device))
        return self._elsewhere

    def nearest(self, count: int) -> Tensor:
        """The `count` nearest other codes of each code, nearest first: [V, min(count, V - 1)] int64."""
        count = min(count, len(self.rows) - 1)
        if self._nearest is None or self._nearest.shape[1] < count:
            self._nearest = torch.cat([self._nearest_of(part, count) for part in self._parts()])
        return self._nearest[:, :count]

    def _parts(self) -> list[Tensor]:
        # All distances at once would be V x V.
        return list(torch.arange(len(self.rows), device=self.rows.device).split(1024))

    def _nearest_of(self, codes: Tensor, count: int) -> Tensor:
        distance = torch.cdist(self.rows[codes], self.rows)
        distance[torch.arange(len(codes), device=codes.device), codes] = torch.inf  # not itself
        return distance.topk(count, dim=-1, largest=False).indices
