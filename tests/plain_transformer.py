"""The transformer written plainly: real numbers, whole sequences, no cache, one row at a time.

What the loaders' transformer is compared with. Weights go by LlamaGen's names, as they are in a file.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def grid_angles(rows: int, cols: int, head_dim: int, base: float) -> Tensor:
    """Angle of each channel pair at each cell, [rows * cols, head_dim / 2] float64."""
    quarter = head_dim // 4
    table = torch.empty(rows * cols, head_dim // 2, dtype=torch.float64)
    for row in range(rows):
        for col in range(cols):
            for j in range(quarter):
                frequency = base ** (-2 * j / (head_dim // 2))
                table[row * cols + col, j] = row * frequency
                table[row * cols + col, quarter + j] = col * frequency
    return table


def plain_logits(
    weights: Mapping[str, Tensor],
    x: Tensor,  # [T, dim] embeddings
    cos: Tensor,  # [T, head_dim / 2]
    sin: Tensor,
    visible: Tensor,  # [T, T] bool: what each position sees
) -> Tensor:
    """Logits at each position, [T, V], in float64."""
    w = {name: tensor.double() for name, tensor in weights.items()}
    x = x.double()
    dim, head_dim = x.shape[1], 2 * cos.shape[1]
    heads = dim // head_dim
    layers = len({name.split(".")[1] for name in w if name.startswith("layers.")})
    for i in range(layers):
        block = {name.removeprefix(f"layers.{i}."): tensor for name, tensor in w.items()}
        fused = norm(x, block["attention_norm.weight"]) @ block["attention.wqkv.weight"].T
        kv_heads = (fused.shape[1] // head_dim - heads) // 2
        q, k, v = fused.split([dim, kv_heads * head_dim, kv_heads * head_dim], dim=1)
        outputs = []
        for head in range(heads):
            shared = head * kv_heads // heads
            query = turn(q[:, head * head_dim :][:, :head_dim], cos, sin)
            key = turn(k[:, shared * head_dim :][:, :head_dim], cos, sin)
            value = v[:, shared * head_dim :][:, :head_dim]
            scores = (query @ key.T / head_dim**0.5).masked_fill(~visible, -torch.inf)
            outputs.append(scores.softmax(-1) @ value)
        x = x + torch.cat(outputs, dim=1) @ block["attention.wo.weight"].T
        h = norm(x, block["ffn_norm.weight"])
        gate, up = (h @ block[f"feed_forward.{name}.weight"].T for name in ("w1", "w3"))
        x = x + (gate * gate.sigmoid() * up) @ block["feed_forward.w2.weight"].T
    return norm(x, w["norm.weight"]) @ w["output.weight"].T


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[:, 0::2], x[:, 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(1)


def file_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parameters of our network under the names that they have in a file."""
    names = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    for name in [name for name in names if name.endswith("w13.weight")]:
        gate, up = names.pop(name).chunk(2)
        names |= {name.replace("w13", "w1"): gate, name.replace("w13", "w3"): up}
    return names
