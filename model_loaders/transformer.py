"""The decoder-only transformer that serves every family: RMSNorm, SwiGLU, grouped queries, rotary positions.

Shape letters: `R` rows (images, twice that with guidance), `N` inputs a row, `A` cache columns that attention looks
at, `H` heads, `D` head size. Names of the parameters are LlamaGen's, with what is fused stacked; other families rename theirs.

Every parameter sits in a module of the `operations` namespace (torch.nn, or the host's comfy.ops), which is what
lets the host keep weights elsewhere and bring them in one module at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from .kv_cache import KVCache, Place, write
from .rotary import rotate


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes. `kv_heads` heads of keys and values serve `heads` heads of queries."""

    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    norm_eps: float = 1e-5

    @property
    def groups(self) -> int:
        """Query heads that share one head of keys."""
        return self.heads // self.kv_heads


class Attention(nn.Module):
    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.config = config
        width = config.heads * config.head_dim
        both = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.wqkv = operations.Linear(config.dim, both, bias=False, **factory)
        self.wo = operations.Linear(width, config.dim, bias=False, **factory)

    def forward(
        self,
        x: Tensor,  # [R, N, dim]
        rotation: Tensor,  # complex [R or 1, N, 1, D / 2]
        cached: tuple[Tensor, Tensor],  # keys and values, [R, kv_heads, C, D]
        place: Place,
        bias: Tensor,  # [R, 1, groups * N, A], added to the attention logits
    ) -> Tensor:
        c = self.config
        rows, count, _ = x.shape
        heads = self.wqkv(x).view(rows, count, c.heads + 2 * c.kv_heads, c.head_dim)
        # Queries and keys lie side by side, so one call turns both.
        turned = rotate(heads[:, :, : -c.kv_heads], rotation)
        q, k, v = turned[:, :, : c.heads], turned[:, :, c.heads :], heads[:, :, -c.kv_heads :]
        keys, values = cached
        write(keys, place, k)
        write(values, place, v)
        # Heads that share keys become more queries of one head: no kernel needs to know of groups.
        q = q.view(rows, count, c.kv_heads, c.groups, c.head_dim).permute(0, 2, 3, 1, 4).flatten(2, 3)
        seen = bias.shape[-1]
        y = F.scaled_dot_product_attention(q, keys[:, :, :seen], values[:, :, :seen], attn_mask=bias)
        y = y.unflatten(2, (c.groups, count)).permute(0, 3, 1, 2, 4)  # [R, N, kv_heads, groups, D]
        return self.wo(y.reshape(rows, count, -1))


class FeedForward(nn.Module):
    """SwiGLU, with gate (w1) and up (w3) as one product."""

    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.w13 = operations.Linear(config.dim, 2 * config.ffn, bias=False, **factory)
        self.w2 = operations.Linear(config.ffn, config.dim, bias=False, **factory)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.w13(x).chunk(2, dim=-1)
        return self.w2(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.attention_norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)
        self.attention = Attention(config, operations, **factory)
        self.ffn_norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)
        self.feed_forward = FeedForward(config, operations, **factory)

    def forward(
        self, x: Tensor, rotation: Tensor, cached: tuple[Tensor, Tensor], place: Place, bias: Tensor
    ) -> Tensor:
        x = x + self.attention(self.attention_norm(x), rotation, cached, place, bias)
        return x.add_(self.feed_forward(self.ffn_norm(x)))


class Transformer(nn.Module):
    """Embeddings in, normalised hidden states out; what lies around it is the family's."""

    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(Block(config, operations, **factory) for _ in range(config.layers))
        self.norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)

    def forward(
        self, x: Tensor, rotation: Tensor, cache: KVCache, place: Place, bias: Tensor, last: bool = False
    ) -> Tensor:
        """Hidden states [R, N, dim] after the final norm; `last` keeps those of the last input only."""
        for layer, cached in zip(self.layers, cache.layers, strict=True):
            x = layer(x, rotation, cached, place, bias)
        return self.norm(x[:, -1:] if last else x)
