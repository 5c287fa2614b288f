"""The decoder-only transformer that serves every family: RMSNorm, SwiGLU, grouped queries, rotary positions.

Two switches are Chameleon's: `qk_norm` normalises queries and keys before they are turned, each head by its
own weights; `post_norm` puts the norm of a branch behind it (34B).

Shape letters: `R` rows (images, twice that with guidance), `N` inputs a row, `A` cache columns that attention
looks at, `H` heads, `D` head size. Between the layers hidden states are [R * N, dim]. Names of the parameters
are LlamaGen's, with gate and up stacked as `w13`; other families rename theirs.

Every parameter sits in a module of the `operations` namespace (torch.nn, or the host's comfy.ops), which is
what lets the host keep weights elsewhere and bring them in one module at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from .float8 import block_linear
from .kv_cache import LayerCache
from .linear import linear
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
    qk_norm: bool = False
    post_norm: bool = False

    @property
    def groups(self) -> int:
        """Query heads that share one head of keys."""
        return self.heads // self.kv_heads


class Attention(nn.Module):
    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        self.groups = config.groups
        fused = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.wqkv = block_linear(operations)(config.dim, fused, bias=False, **factory)
        self.wo = block_linear(operations)(config.heads * config.head_dim, config.dim, bias=False, **factory)
        # A LayerNorm over each head with weights of its own is a GroupNorm whose groups are the heads.
        turned = config.heads + config.kv_heads
        norm = operations.GroupNorm(turned, turned * config.head_dim, eps=1e-5, **factory)
        self.qk_norm = norm if config.qk_norm else None

    def forward(
        self,
        x: Tensor,  # [R * N, dim]
        rotation: Tensor,  # complex [R or 1, N, 1, D / 2]
        cache: LayerCache,
        bias: Tensor,  # [R, 1, groups * N, A], added to the attention logits
    ) -> Tensor:
        rows, count = len(bias), rotation.shape[1]
        fused = linear(self.wqkv, x).view(rows, count, -1, self.head_dim)  # [R, N, heads + 2 kv_heads, D]
        both, values = fused.split([self.heads + self.kv_heads, self.kv_heads], dim=2)
        if self.qk_norm is not None:
            both = self.qk_norm(both.reshape(rows * count, -1)).view(both.shape)
        # Queries and keys lie side by side, so one call turns both.
        queries, keys = rotate(both, rotation).split([self.heads, self.kv_heads], dim=2)
        cache.write(keys, values)
        if self.groups == 1:
            y = F.scaled_dot_product_attention(
                queries.transpose(1, 2), cache.keys, cache.values, attn_mask=bias
            )
            y = y.transpose(1, 2)
        else:
            # Heads that share keys become more queries of one head: no kernel needs to know of groups.
            queries = queries.unflatten(2, (self.kv_heads, self.groups)).permute(0, 2, 3, 1, 4).flatten(2, 3)
            y = F.scaled_dot_product_attention(queries, cache.keys, cache.values, attn_mask=bias)
            y = y.unflatten(2, (self.groups, count)).permute(0, 3, 1, 2, 4)
        return linear(self.wo, y.reshape(rows * count, -1))


class FeedForward(nn.Module):
    """SwiGLU, with gate (w1) and up (w3) as one product."""

    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.w13 = block_linear(operations)(config.dim, 2 * config.ffn, bias=False, **factory)
        self.w2 = block_linear(operations)(config.ffn, config.dim, bias=False, **factory)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = linear(self.w13, x).chunk(2, dim=-1)
        return linear(self.w2, F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.post_norm = config.post_norm
        self.attention_norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)
        self.attention = Attention(config, operations, **factory)
        self.ffn_norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)
        self.feed_forward = FeedForward(config, operations, **factory)

    def forward(self, x: Tensor, rotation: Tensor, cache: LayerCache, bias: Tensor) -> Tensor:
        if self.post_norm:
            x = x + self.attention_norm(self.attention(x, rotation, cache, bias))
            return x.add_(self.ffn_norm(self.feed_forward(x)))
        x = x + self.attention(self.attention_norm(x), rotation, cache, bias)
        return x.add_(self.feed_forward(self.ffn_norm(x)))


class Transformer(nn.Module):
    """Embeddings in, hidden states out, before the last norm; what lies around it is the family's."""

    def __init__(self, config: TransformerConfig, operations: Any, **factory: Any) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(Block(config, operations, **factory) for _ in range(config.layers))
        self.norm = operations.RMSNorm(config.dim, eps=config.norm_eps, **factory)

    def forward(self, x: Tensor, rotation: Tensor, caches: Sequence[LayerCache], bias: Tensor) -> Tensor:
        """Embeddings [R, N, dim] -> hidden states [R, N, dim]."""
        shape = x.shape
        x = x.flatten(0, 1)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, rotation, cache, bias)
        return x.view(shape)
