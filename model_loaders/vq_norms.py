"""Norms of the VQ networks: plain ones, and MoVQ's, which the codes guide."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .image_tokenizer import Operations

GROUPS = 32  # of every GroupNorm
EPSILON = 1e-6


class GuidedNorm(nn.Module):
    """MoVQ's norm: scaled and shifted, place by place, by what two 1 x 1 convolutions make of the codes."""

    def __init__(self, width: int, guide: int, ops: Operations) -> None:
        super().__init__()
        self.norm_layer = ops.GroupNorm(GROUPS, width, eps=EPSILON)
        self.conv_y = ops.Conv2d(guide, width, 1)
        self.conv_b = ops.Conv2d(guide, width, 1)

    def forward(self, x: Tensor, guide: Tensor) -> Tensor:  # [B, c, h, w] and the codes [B, g, rows, cols]
        return spread(self.norm_layer(x), self.conv_y(guide), self.conv_b(guide))


def spread(x: Tensor, scale: Tensor, shift: Tensor, first: int = 0, factor: int = 0) -> Tensor:
    """x * scale + shift in place, each place of `scale` and `shift` standing for a square of places of x.

    x [B, c, h, w] are all rows, or those from row `first` on of a tensor that is `factor` times as high as
    the maps. A 1 x 1 convolution of enlarged codes is the enlarged convolution: maps of the codes' own
    resolution save the memory of large ones.
    """
    factor = factor or x.shape[-2] // scale.shape[-2]
    rows = torch.arange(first, first + x.shape[-2], device=x.device) // factor
    squares = x.unflatten(-1, (-1, factor))  # [B, c, h, cols, factor]
    squares.mul_(scale[:, :, rows, :, None]).add_(shift[:, :, rows, :, None])
    return x


def make_norm(width: int, guide: int, ops: Operations) -> nn.Module:
    return GuidedNorm(width, guide, ops) if guide else ops.GroupNorm(GROUPS, width, eps=EPSILON)


def apply_norm(norm: nn.Module, x: Tensor, guide: Tensor | None) -> Tensor:
    return norm(x) if guide is None else norm(x, guide)


def group_affine(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """What a GroupNorm does to x [1, c, h, w], as x * scale + shift: two tensors [1, c, 1, 1].

    The norm's own weight and bias are read off its answer to a pattern of mean 0 and variance 1, because the
    host may keep them elsewhere and bring them in only while the module runs.
    """
    precise = torch.promote_types(x.dtype, torch.float32)
    variance, mean = torch.var_mean(x.reshape(GROUPS, -1), dim=1, correction=0)
    each = x.shape[1] // GROUPS
    mean, variance = (v.to(precise).repeat_interleave(each).view(1, -1, 1, 1) for v in (mean, variance))
    pattern = torch.tensor([1.0, -1.0], dtype=x.dtype, device=x.device).expand(1, x.shape[1], 1, 2)
    up, down = norm(pattern.contiguous()).to(precise).chunk(2, dim=-1)
    weight, bias = (up - down) / 2 * (1 + norm.eps) ** 0.5, (up + down) / 2
    scale = weight / (variance + norm.eps).sqrt()
    return scale.to(x.dtype), (bias - mean * scale).to(x.dtype)
