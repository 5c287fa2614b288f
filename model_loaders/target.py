"""The model seam for decoders: one run over one batch, with its cache, guidance and attention masks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..decoding.grid import TokenGrid
from .image_transformer import ImageTransformer, Prompt
from .kv_cache import KVCache
from .rotary import rotation_dtype

# The cache and what attention looks at are whole steps of columns: few shapes, and of a kind that device
# kernels take without copying the mask. A prompt is padded to whole steps too, and its last step goes through
# the head: matrix products of a few rows take other kernels than those of many (in float32 on the CPU, below
# 12 rows that are no multiple of 4), which would give an image alone other bits than the same image in a
# batch.
STEP = 16


def whole_steps(columns: int) -> int:
    """The number of columns, rounded up."""
    return -(-columns // STEP) * STEP


class TransformerTarget:
    """Implements decoding's `TargetModel`.

    Rows of the network are the images of the batch, and with guidance a second block of unconditional rows in
    the same order, all in one forward. Guidance 1 needs no second block.
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
        rows = network.prompt_rows(prompts, self.grid, self._blocks == 2, dtype, device)
        length = rows.embeddings.shape[1]
        missing = whole_steps(length) - length
        embeddings = F.pad(rows.embeddings, (0, 0, missing, 0))  # [R, T, dim]
        visible = F.pad(rows.visible, (missing, 0))  # [R, T]
        count, prefix = visible.shape
        c = network.transformer.config
        total = whole_steps(prefix + slots)
        self._cache = KVCache(c.layers, count, c.kv_heads, total, c.head_dim, dtype, device)
        self._prefix = prefix
        self._constant = rows.constant
        turns = network.turns(self.grid, visible, rotation_dtype(dtype))
        self._turns = turns.table.to(device)
        self._first = turns.first

        # A padding query sees itself alone: nobody sees it, but a row of a mask must not be empty.
        causal = torch.ones(prefix, prefix, dtype=torch.bool, device=device).tril()
        itself = torch.eye(prefix, dtype=torch.bool, device=device)
        bias = _bias((causal & visible[:, None]) | itself, dtype)  # [R, 1, T, T]
        self._prompt_bias = _bias(visible[:, None], dtype)  # [R, 1, 1, T]
        columns = torch.arange(prefix).expand(count, -1)
        return self._run(embeddings, turns.prompt.to(device), columns, bias, last=STEP)[:, -1]

    @torch.no_grad()
    def forward(self, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        return self._forward(self._embed(inputs), positions, slots, visible)

    def _embed(self, inputs: Tensor) -> Tensor:
        """Input ids [B, N] -> [B, N, dim]."""
        return self._network.embed(inputs.to(self.device)).to(self._dtype)

    def _forward(self, embeddings: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        columns = self._both(self._prefix + slots)
        x = self._both(embeddings)
        if self._constant is not None:
            x = x + self._constant
        positions = positions.to(self.device)
        if self._first is None:
            turns = self._turns[positions]  # [B, N, D / 2]
            # One image's turns serve both of its rows by broadcasting.
            turns = turns if len(turns) == 1 else self._both(turns)
        else:
            turns = self._turns[self._first[:, None] + self._both(positions)]  # [R, N, D / 2]
        # Attention looks at the prompt, then at the visible slots, then at hidden columns up to a whole step.
        beyond = whole_steps(self._prefix + visible.shape[-1]) - self._prefix - visible.shape[-1]
        bias = self._both(_bias(F.pad(visible.to(self.device), (self._prefix, beyond)), self._dtype))
        bias[..., : self._prefix] = self._prompt_bias
        return self._run(x, turns, columns, bias)

    def move(self, source: Tensor, destination: Tensor) -> None:
        self._cache.move(self._both(self._prefix + source), self._both(self._prefix + destination))

    def retain(self, images: Sequence[int]) -> None:
        each = self._cache.rows // self._blocks
        rows = [block * each + image for block in range(self._blocks) for image in images]
        self._cache.retain(rows)
        self._prompt_bias = self._prompt_bias[rows]
        if self._constant is not None:
            self._constant = self._constant[rows]
        if self._first is not None:
            self._first = self._first[rows]

    def _both(self, x: Tensor) -> Tensor:
        """[B, …] of the images -> [R, …] of the rows."""
        return x if self._blocks == 1 else torch.cat([x, x])

    def _run(self, x: Tensor, turns: Tensor, columns: Tensor, bias: Tensor, last: int = 0) -> Tensor:
        """Inputs [R, N, dim] -> guided logits [B, N, V]; with `last`, of that many last inputs only."""
        transformer = self._network.transformer
        caches = self._cache.open(columns, bias.shape[-1])
        if transformer.config.groups > 1:
            bias = bias.repeat(1, 1, transformer.config.groups, 1)
        hidden = transformer(x, turns[:, :, None], caches, bias)[:, -last:]
        logits = self._network.logits(transformer.norm(hidden)).to(rotation_dtype(self._dtype))
        if self._blocks == 1:
            return logits
        conditional, unconditional = logits.chunk(2)
        return torch.add(unconditional, conditional - unconditional, alpha=self._guidance)


def _bias(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """What attention logits get added, 0 where visible and -inf elsewhere: [R, N, A] bool -> [R, 1, N, A].

    Made once a forward: from a bool mask, each layer would make it anew.
    """
    bias = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
    return bias.masked_fill_(~visible, -torch.inf)[:, None]
