"""The model seam for decoders: one run over one batch, with its cache, guidance and attention masks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..decoding.grid import TokenGrid
from .image_transformer import ImageTransformer, Prompt
from .kv_cache import KVCache
from .rotary import rotation_dtype

# Attention looks at a multiple of so many columns. Kernels sum what is left over after their last full vector in
# another order, so a width that divides evenly gives a token the same bits however much of the cache is looked at
# (measured by tests/test_fixed_shapes.py); it also is what the device kernels want of a mask.
COLUMN_STEP = 64


def columns_for(used: int) -> int:
    """Cache columns that `used` columns take up."""
    return -(-used // COLUMN_STEP) * COLUMN_STEP


class TransformerTarget:
    """Implements decoding's `TargetModel`.

    Rows of the network are the images of the batch, and with guidance a second block of unconditional rows in the
    same order, all in one forward. Guidance 1 needs no second block.
    """

    def __init__(
        self,
        network: ImageTransformer,
        grid: TokenGrid,
        guidance: float,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.grid = grid
        self.vocabulary = network.vocabulary
        self.device = device
        self._network = network
        self._guidance = guidance
        self._blocks = 1 if guidance == 1 else 2
        self._dtype = dtype

    @torch.no_grad()
    def prefill(self, prompts: Sequence[Prompt], slots: int) -> Tensor:
        network, dtype, device = self._network, self._dtype, self.device
        rows = network.prompt_rows(prompts, self._blocks == 2, dtype, device)
        count, prefix, _ = rows.embeddings.shape
        c = network.transformer.config
        columns = columns_for(prefix + slots)
        self._cache = KVCache(c.layers, count, c.kv_heads, columns, c.head_dim, dtype, device)
        self._prefix = prefix
        self._constant = rows.constant
        turns = network.rotations(self.grid, prefix, rotation_dtype(dtype))
        before, self._rotation = (turn.to(device) for turn in turns)

        # A padding query sees itself alone: nobody sees it, but a row of a mask must not be empty.
        causal = torch.ones(prefix, prefix, dtype=torch.bool, device=device).tril()
        itself = torch.eye(prefix, dtype=torch.bool, device=device)
        seen = (causal & rows.visible[:, None]) | itself  # [R, T, T]
        bias = torch.full((count, 1, prefix, columns_for(prefix)), -torch.inf, dtype=dtype, device=device)
        bias[..., :prefix].masked_fill_(seen[:, None], 0)
        self._prompt_bias = torch.zeros(count, 1, 1, prefix, dtype=dtype, device=device)
        self._prompt_bias.masked_fill_(~rows.visible[:, None, None], -torch.inf)

        return self._run(rows.embeddings, before[None], slice(0, prefix), bias, last=True)[:, 0]

    @torch.no_grad()
    def forward(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        place = self._cache.place(self._both(self._prefix + slots))
        x = self._network.embed(self._both(inputs.to(self.device))).to(self._dtype)
        if self._constant is not None:
            x = x + self._constant
        turns = self._rotation[positions.to(self.device)]  # [B, N, D / 2]
        # One image's turns serve both of its rows by broadcasting.
        turns = turns if len(turns) == 1 else self._both(turns)
        return self._run(x, turns, place, self._bias(visible.to(self.device)))

    def move(self, source: Tensor, destination: Tensor) -> None:
        self._cache.move(self._both(self._prefix + source), self._both(self._prefix + destination))

    def retain(self, images: Sequence[int]) -> None:
        each = self._cache.rows // self._blocks
        rows = [block * each + image for block in range(self._blocks) for image in images]
        self._cache.retain(rows)
        self._prompt_bias = self._prompt_bias[rows]
        if self._constant is not None:
            self._constant = self._constant[rows]

    def _both(self, x: Tensor) -> Tensor:
        """[B, …] of the images -> [R, …] of the rows."""
        return x if self._blocks == 1 else torch.cat([x, x])

    def _bias(self, visible: Tensor) -> Tensor:
        """What to add to attention logits: [B, N, K] bool -> [R, 1, N, A], 0 where visible and -inf elsewhere.

        Made once a forward: from a bool mask, each layer would make it anew.
        """
        images, count, seen = visible.shape
        prefix, width = self._prefix, columns_for(self._prefix + seen)
        bias = torch.full((images, 1, count, width), -torch.inf, dtype=self._dtype, device=self.device)
        bias[..., prefix : prefix + seen].masked_fill_(visible[:, None], 0)
        bias = self._both(bias)
        bias[..., :prefix] = self._prompt_bias
        return bias

    def _run(
        self, x: Tensor, turns: Tensor, place: slice | tuple[Tensor, Tensor], bias: Tensor, last: bool = False
    ) -> Tensor:
        """Rows through the network: embeddings [R, N, dim] -> guided logits [B, N (1 if `last`), V]."""
        network = self._network
        bias = bias.repeat(1, 1, network.transformer.config.groups, 1)
        hidden = network.transformer(x, turns[:, :, None], self._cache, place, bias, last)
        logits = network.logits(hidden).to(rotation_dtype(self._dtype))
        if self._blocks == 1:
            return logits
        conditional, unconditional = logits.chunk(2)
        return torch.add(unconditional, conditional - unconditional, alpha=self._guidance)
