"""The transformer while it is trained: whole sequences, no cache, names of the parameters as in the file."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Size:
    """`prefix` words (the style is one), `grid` tokens a side; `ffn` channels within the feed-forward."""

    dim: int = 256
    n_layers: int = 6
    n_heads: int = 4
    ffn: int = 704
    vocab: int = 4096
    prefix: int = 8
    grid: int = 16
    rope_base: float = 100.0
    norm_eps: float = 1e-5

    def settings(self) -> dict[str, object]:
        """For the metadata of the file."""
        return {"family": "builtin"} | asdict(self)


class Attention(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.n_heads
        self.wqkv = nn.Linear(size.dim, 3 * size.dim, bias=False)
        self.wo = nn.Linear(size.dim, size.dim, bias=False)
        head = torch.arange(size.dim // size.n_heads)
        halves = torch.cat([head[0::2], head[1::2]])
        starts = torch.arange(0, 2 * size.dim, size.dim // size.n_heads)
        order = torch.cat([(starts[:, None] + halves).flatten(), torch.arange(2 * size.dim, 3 * size.dim)])
        self.register_buffer("order", order, persistent=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # [B, T, dim]
        # Of each head's queries and keys the first channels of all pairs come first: cheaper to turn, and
        # their products are the same in any order.
        weight = self.wqkv.weight[self.order]
        fused = F.linear(x, weight).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys = _turn(fused[:2], cos, sin)  # [B, H, T, D]
        y = causal_attention(queries, keys, fused[2])
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.w1 = nn.Linear(size.dim, size.ffn, bias=False)
        self.w2 = nn.Linear(size.ffn, size.dim, bias=False)
        self.w3 = nn.Linear(size.dim, size.ffn, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(size.dim, size.norm_eps)
        self.attention = Attention(size)
        self.ffn_norm = nn.RMSNorm(size.dim, size.norm_eps)
        self.feed_forward = FeedForward(size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


class Network(nn.Module):
    """`embed` and `forward` are apart, so that other inputs than clean tokens can be trained on."""

    def __init__(self, size: Size, words: int) -> None:
        super().__init__()
        self.size = size
        self.tok_embeddings = nn.Embedding(size.vocab, size.dim)
        self.text_embeddings = nn.Embedding(words, size.dim)
        self.text_positions = nn.Parameter(torch.randn(size.prefix, size.dim) * 0.1)
        self.text_global = nn.Linear(size.dim, size.dim, bias=False)
        self.layers = nn.ModuleList(Block(size) for _ in range(size.n_layers))
        self.norm = nn.RMSNorm(size.dim, size.norm_eps)
        self.output = nn.Linear(size.dim, size.vocab, bias=False)
        for block in self.layers:
            # Branches start small, so that depth does not blow up the first steps.
            for last in (block.attention.wo, block.feed_forward.w2):
                nn.init.normal_(last.weight, std=0.02 / (2 * size.n_layers) ** 0.5)
        angles = _angles(size)
        self.register_buffer("cos", angles.cos(), persistent=False)  # [prefix + cells, D / 2]
        self.register_buffer("sin", angles.sin(), persistent=False)

    def embed(self, ids: Tensor, tokens: Tensor) -> Tensor:
        """Words [B, prefix] (0 is padding) and tokens [B, N] of the first cells -> [B, prefix + N, dim]."""
        prompt = self.text_embeddings(ids) + self.text_positions
        summed = (prompt * (ids != 0)[..., None]).sum(1, keepdim=True)
        return torch.cat([prompt, self.tok_embeddings(tokens)], 1) + self.text_global(summed)

    def forward(self, x: Tensor, wanted: Tensor | None = None) -> Tensor:
        """Embeddings [B, prefix + N, dim] -> logits [B, N + 1, vocab] of cells 0 to N, or where `wanted`
        [B, N + 1] bool is true [wanted, vocab]."""
        cos, sin = self.cos[: x.shape[1]], self.sin[: x.shape[1]]
        for block in self.layers:
            x = block(x, cos, sin)
        x = x[:, self.size.prefix - 1 :]
        return self.output(self.norm(x if wanted is None else x[wanted]))


def _angles(size: Size) -> Tensor:
    """[prefix + cells, D / 2]: none for the prefix; the first half of the pairs turns by row, then column."""
    half = size.dim // size.n_heads // 2
    frequencies = size.rope_base ** -(torch.arange(0, half, 2).double() / half)
    ticks = torch.arange(size.grid).double()[:, None] * frequencies  # [grid, half / 2]
    rows, cols = ticks.repeat_interleave(size.grid, 0), ticks.repeat(size.grid, 1)
    cells = torch.cat([rows, cols], 1)
    return torch.cat([cells.new_zeros(size.prefix, half), cells]).float()


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [..., T, D]: channel j and j + D / 2 are a pair, turned by angle j."""
    a, b = x.chunk(2, -1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def causal_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """[B, H, T, D]. Written out on a CPU, where the fused kernel takes twice as long in bfloat16."""
    if queries.device.type != "cpu":
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    count, width = queries.shape[-2:]
    later = queries.new_full((count, count), -torch.inf).triu(1)
    scores = (queries.flatten(0, 1) @ keys.flatten(0, 1).transpose(1, 2)) * width**-0.5 + later
    return (scores.softmax(-1) @ values.flatten(0, 1)).view_as(queries)
