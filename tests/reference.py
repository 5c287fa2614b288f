"""Running our models beside transformers' classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.image_transformer import Prompt
from torch import Tensor, nn

Logits = Callable[[Tensor, Tensor, Tensor], Tensor]


def stream_of(grid: TokenGrid, tokens: Tensor) -> Tensor:
    """Tokens [B, cells] -> what lies at each stream position, [B, length]."""
    stream = torch.from_numpy(grid.structure()).repeat(len(tokens), 1)
    stream[:, torch.from_numpy(grid.cell_positions())] = tokens
    return stream


def logits_in_windows(
    model: ImageModel,
    grid: TokenGrid,
    prompts: Sequence[Prompt],
    stream: Tensor,  # [B, length]
    guidance: float,
    windows: Sequence[int],
) -> Tensor:
    """Guided logits for every stream position given those before it, [B, length, V]."""
    target, length = model.target(grid, guidance), stream.shape[1]
    logits, start = [target.prefill(prompts, length)[:, None]], 0
    for width in windows:
        slots = torch.arange(start, min(start + width, length - 1)).expand(len(stream), -1)
        visible = torch.arange(length) <= slots[..., None]
        logits.append(target.forward(stream[:, slots[0]], slots, slots, visible))
        start += width
    return torch.cat(logits, dim=1)


# Rows fed before the rows above them, with gaps; the last input does not see two of the others.
ORDER = [0, 1, 2, 3, 8, 9, 4, 5, 12]
SEEN = torch.ones(9, 9, dtype=torch.bool).tril()
SEEN[8, 4:6] = False


def logits_out_of_order(
    model: ImageModel, grid: TokenGrid, prompt: Prompt, stream: Tensor, guidance: float
) -> Tensor:
    """Guided logits after each stream position of `ORDER`, [9, V], fed as 4, 2 and 3 inputs."""
    target, order, logits = model.target(grid, guidance), torch.tensor(ORDER), []
    target.prefill([prompt], grid.length)
    for part in (slice(0, 4), slice(4, 6), slice(6, 9)):
        visible = torch.zeros(1, len(order[part]), grid.length, dtype=torch.bool)
        visible[0, :, order] = SEEN[part]
        slots = order[None, part]
        logits.append(target.forward(stream[None, order[part]], slots, slots, visible)[0])
    return torch.cat(logits)


def reference_out_of_order(logits: Logits, prompt: Sequence[int], stream: Tensor) -> Tensor:
    """The same of a reference `logits(prompt ids, stream, positions, mask)`, in one pass."""
    count, order = len(prompt), torch.tensor(ORDER)
    mask = torch.ones(count + 9, count + 9, dtype=torch.bool).tril()
    mask[count:, count:] = SEEN
    positions = torch.cat([torch.arange(count), count + order])
    return logits(list(prompt), stream[order], positions, mask)[count:]


def additive(mask: Tensor) -> Tensor:
    """[T, T] bool -> what transformers adds to attention logits, [1, 1, T, T]."""
    return torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)[None, None]


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """Weights that leave nothing near zero, norms and biases included."""
    draw = torch.Generator().manual_seed(seed)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(False).normal_(0, 0.3, generator=draw)
        if "norm" in name and name.endswith("weight"):
            parameter.add_(1)
    return module.eval()
