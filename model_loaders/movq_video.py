"""Emu3's image tokenizer: MoVQ, with convolutions over time because it was made for video.

A token stands for four frames. All convolutions over time look back only, so the first frame of what they
make is a picture's, and the large 2-D decoder runs on it alone: the same picture for a quarter of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .image_tokenizer import Operations
from .vq_names import Names
from .vqgan import VQGAN, Half

BEFORE = 2  # empty frames put before the first one


@dataclass(frozen=True)
class Times:
    """Sizes of the parts that work over time."""

    codes: int  # channels of a codebook row, and of all of these parts
    kernels: tuple[int, ...]  # frames that each resampling convolution of the encoder sees
    encoder_blocks: int
    doublings: int  # of the frames, in the decoder
    decoder_blocks: int


def read_times(names: Names, encodes: bool) -> Times:
    kernels = names.count("encoder.time_conv.{}.conv.conv.weight") if encodes else 0
    shapes = [names.shape(f"encoder.time_conv.{i}.conv.conv.weight", 5) for i in range(kernels)]
    return Times(
        codes=names.shape("post_quant_conv.conv.weight", 5)[0],
        kernels=tuple(shape[2] for shape in shapes),
        encoder_blocks=names.count("encoder.time_res_stack.{}.conv1.conv.weight"),
        doublings=names.count("decoder.time_conv.{}.conv.conv.weight"),
        decoder_blocks=names.count("decoder.time_res_stack.{}.conv1.conv.weight"),
    )


class CausalConv(nn.Module):
    def __init__(self, width: int, kernel: Sequence[int], ops: Operations, stride: int = 1) -> None:
        super().__init__()
        around = (0, kernel[1] // 2, kernel[2] // 2)
        self.conv = ops.Conv3d(width, width, tuple(kernel), stride=(stride, 1, 1), padding=around)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, t, h, w]
        return self.conv(F.pad(x, (0, 0, 0, 0, BEFORE, 0)))


class TimeResample(nn.Module):
    """Halves the frames (by a kernel with stride 2) or doubles them."""

    def __init__(self, width: int, ops: Operations, kernel: int = 0) -> None:
        super().__init__()
        self.doubles = not kernel
        self.conv = CausalConv(width, (kernel or 3, 3, 3), ops, stride=1 if self.doubles else 2)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, t, h, w]
        return F.silu(self.conv(x.repeat_interleave(2, dim=2) if self.doubles else x))


class TimeResidual(nn.Module):
    def __init__(self, width: int, ops: Operations) -> None:
        super().__init__()
        # Used as trained, by its running statistics: torch's own class, for the host has none.
        self.norm1 = nn.BatchNorm3d(width)
        self.conv1 = CausalConv(width, (3, 3, 3), ops)
        self.norm2 = nn.BatchNorm3d(width)
        self.conv2 = CausalConv(width, (3, 3, 3), ops)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, t, h, w]
        y = self.conv1(F.silu(self.norm1(x)))
        return x + self.conv2(F.silu(self.norm2(y)))


class VideoVQ(VQGAN):
    def __init__(self, times: Times, encoder: Half | None, decoder: Half, ops: Operations) -> None:
        width = times.codes
        super().__init__(width, encoder, decoder, ops)
        if encoder is not None:
            self.encoder.time_conv = nn.ModuleList(TimeResample(width, ops, k) for k in times.kernels)
            blocks = (TimeResidual(width, ops) for _ in range(times.encoder_blocks))
            self.encoder.time_res_stack = nn.Sequential(*blocks)
            self.quant_conv = CausalConv(width, (3, 1, 1), ops)
        self.post_quant_conv = CausalConv(width, (3, 1, 1), ops)
        blocks = (TimeResidual(width, ops) for _ in range(times.decoder_blocks))
        self.decoder.time_res_stack = nn.Sequential(*blocks)
        self.decoder.time_conv = nn.ModuleList(TimeResample(width, ops) for _ in range(times.doublings))

    def decoder_inputs(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        frame = codes[:, :, None]  # [1, c, 1, rows, cols]
        x = self.decoder.time_res_stack(torch.cat([self.post_quant_conv(frame), frame]))
        for double in self.decoder.time_conv:
            x = double(x)
        z, guide = x[:, :, 0].chunk(2)
        return z.contiguous(), guide.contiguous()

    def features(self, encoded: Tensor) -> Tensor:
        frame = encoded[:, :, None]
        # A picture is a film of equal frames.
        x = frame.repeat(1, 1, 2 ** len(self.encoder.time_conv), 1, 1)
        for halve in self.encoder.time_conv:
            x = halve(x)
        return self.quant_conv(self.encoder.time_res_stack(x))[:, :, 0]
