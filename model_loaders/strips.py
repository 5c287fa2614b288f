"""A VQ network computed in horizontal strips: the same within rounding, in less memory.

Not the usual tiles with blended seams: a strip of a convolution needs one row above and below, a norm needs
the mean and the spread of the whole tensor, attention runs over all keys for a part of the queries. So each
operation is exact, and of the large tensors only two are there at once: a block's input, and the inner one
that its result overwrites strip by strip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .vq_norms import GuidedNorm, group_affine, spread

if TYPE_CHECKING:
    from .vqgan import Attention, Blocks, Decoder, Encoder, Residual

NUMBERS = 2**23  # in a strip, of its input: 32 MiB in float32
# Rows of a tensor and the number of the first -> what a convolution takes in.
Prepare = Callable[[Tensor, int], Tensor]
Run = Callable[[nn.Module, Tensor, "Tensor | None", int], Tensor]


def decode(decoder: Decoder, z: Tensor, guide: Tensor | None, numbers: int = NUMBERS) -> Tensor:
    """As `decoder(z, guide)`: [1, z, rows, cols] -> [1, 3, height, width]."""
    x = decoder.conv_in(z)
    for run, block in _middle(decoder.mid):
        x = run(block, x, guide, numbers)
    for level in decoder.conv_blocks:
        for run, block in _blocks(level):
            x = run(block, x, guide, numbers)
        if level.upsample is not None:
            x = _convolve(level.upsample.conv, x, _double, numbers, grow=2)
    return _convolve(decoder.conv_out, x, _activation(decoder.norm_out, x, guide), numbers)


def encode(encoder: Encoder, pixels: Tensor, numbers: int = NUMBERS) -> Tensor:
    """As `encoder(pixels)`: [1, 3, height, width] -> [1, z, rows, cols]."""
    x = _convolve(encoder.conv_in, pixels, lambda rows, first: rows, numbers)
    for level in encoder.conv_blocks:
        for run, block in _blocks(level):
            x = run(block, x, None, numbers)
        if level.downsample is not None:
            x = _halve(level.downsample.conv, x, numbers)
    for run, block in _middle(encoder.mid):
        x = run(block, x, None, numbers)
    return _convolve(encoder.conv_out, x, _activation(encoder.norm_out, x, None), numbers)


# What runs on x is named here and run above, where x is the only name of the tensor: a function that ran a
# whole level would leave its caller holding the level's input.


def _middle(mid: nn.ModuleList) -> Iterator[tuple[Run, nn.Module]]:
    return zip((_residual, _attention, _residual), mid, strict=True)


def _blocks(level: Blocks) -> Iterator[tuple[Run, nn.Module]]:
    for number, block in enumerate(level.res):
        yield _residual, block
        if level.attn:
            yield _attention, level.attn[number]


def _residual(block: Residual, x: Tensor, guide: Tensor | None, numbers: int) -> Tensor:
    y = _convolve(block.conv1, x, _activation(block.norm1, x, guide), numbers)
    result = _activation(block.norm2, y, guide)
    return _convolve(block.conv2, y, result, numbers, out=y, add=lambda rows: block.shortcut(x[:, :, rows]))


def _attention(block: Attention, x: Tensor, guide: Tensor | None, numbers: int) -> Tensor:
    return block(x, guide, queries=max(1, numbers // (x.shape[2] * x.shape[3])))


def _double(rows: Tensor, first: int) -> Tensor:
    return F.interpolate(rows, scale_factor=2.0, mode="nearest")


def _activation(norm: nn.Module, x: Tensor, guide: Tensor | None) -> Prepare:
    """The norm over the whole of x, and the activation, of some of its rows."""
    guided = isinstance(norm, GuidedNorm)
    scale, shift = group_affine(norm.norm_layer if guided else norm, x)
    maps = (norm.conv_y(guide), norm.conv_b(guide)) if guided else None

    def prepare(rows: Tensor, first: int) -> Tensor:
        y = torch.addcmul(shift, rows, scale)
        if maps is not None:
            spread(y, *maps, first=first, factor=x.shape[2] // maps[0].shape[2])
        return F.silu(y, inplace=True)

    return prepare


def _convolve(
    conv: nn.Module,  # 3 x 3, padding 1
    x: Tensor,  # [1, c, h, w]
    prepare: Prepare,
    numbers: int,
    *,
    grow: int = 1,  # rows that `prepare` makes of one
    out: Tensor | None = None,  # where the result goes; may be x itself
    add: Callable[[slice], Tensor] | None = None,  # what some rows of the result get added
) -> Tensor:
    """conv(prepare(x)), strip by strip: [1, c', h * grow, w * grow]."""
    height = x.shape[2]
    step = max(1, numbers // (x.shape[1] * x.shape[3] * grow * grow))
    above = x[:, :, :0]
    for low in range(0, height, step):
        high = min(low + step, height)
        below = int(high < height)
        rows = torch.cat([above, x[:, :, low : high + below]], dim=2)
        y = conv(prepare(rows, low - above.shape[2]))
        y = y[:, :, grow * above.shape[2] : y.shape[2] - grow * below]
        above = x[:, :, high - 1 : high].clone()  # before the result may overwrite it
        if add is not None:
            y = y + add(slice(low, high))
        if out is None:
            out = y.new_empty(len(y), y.shape[1], height * grow, y.shape[3])
        out[:, :, low * grow : high * grow] = y
    return out


def _halve(conv: nn.Module, x: Tensor, numbers: int) -> Tensor:
    """The downsampling convolution (3 x 3, stride 2, padded right and below): [1, c, h, w] -> halves."""
    height = x.shape[2]
    step = max(2, numbers // (x.shape[1] * x.shape[3]) // 2 * 2)
    strips = []
    for low in range(0, height, step):
        high = min(low + step, height)
        rows = x[:, :, low : high + 1]  # one more than they are, but for the last
        strips.append(conv(F.pad(rows, (0, 1, 0, int(high == height)))))
    return torch.cat(strips, dim=2)
