"""The VQGAN network of LlamaGen's image tokenizer: residual CNN, attention at the lowest resolution.

Names of the modules are those of the official files. Levels, widths, attention and codebook are read off the
tensors' shapes, so VQ-16, VQ-8 and retrained sizes take the same code.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checkpoint import Checkpoint
from .errors import CheckpointError
from .image_tokenizer import ImageTokenizer, Operations
from .strict import assign

CODEBOOK = "quantize.embedding.weight"
GROUPS = 32  # of every GroupNorm


@dataclass(frozen=True)
class Level:
    """Residual blocks at one resolution."""

    widths: tuple[int, ...]  # channels after each block
    attention: bool  # after each block
    resample: bool  # a convolution that halves or doubles the resolution ends the level


@dataclass(frozen=True)
class Half:
    """Sizes of the encoder or the decoder."""

    width_in: int  # channels of the first convolution's input
    width: int  # and of its output
    width_out: int  # channels of the last convolution's output
    levels: tuple[Level, ...]  # in the order in which they run


class Residual(nn.Module):
    def __init__(self, width_in: int, width: int, ops: Operations) -> None:
        super().__init__()
        self.norm1 = ops.GroupNorm(GROUPS, width_in, eps=1e-6)
        self.conv1 = ops.Conv2d(width_in, width, 3, padding=1)
        self.norm2 = ops.GroupNorm(GROUPS, width, eps=1e-6)
        self.conv2 = ops.Conv2d(width, width, 3, padding=1)
        self.nin_shortcut = ops.Conv2d(width_in, width, 1) if width_in != width else None

    def forward(self, x: Tensor) -> Tensor:  # [B, width_in, h, w] -> [B, width, h, w]
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y)))
        return y + (x if self.nin_shortcut is None else self.nin_shortcut(x))


class Attention(nn.Module):
    """One head over all places of the picture."""

    def __init__(self, width: int, ops: Operations) -> None:
        super().__init__()
        self.norm = ops.GroupNorm(GROUPS, width, eps=1e-6)
        self.q = ops.Conv2d(width, width, 1)
        self.k = ops.Conv2d(width, width, 1)
        self.v = ops.Conv2d(width, width, 1)
        self.proj_out = ops.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, h, w]
        y = self.norm(x)
        q, k, v = (
            f(y).flatten(2).transpose(1, 2)[:, None] for f in (self.q, self.k, self.v)
        )  # [B, 1, h w, c]
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.proj_out(y[:, 0].transpose(1, 2).reshape(x.shape))


class Upsample(nn.Module):
    def __init__(self, width: int, ops: Operations) -> None:
        super().__init__()
        self.conv = ops.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, h, w] -> [B, c, 2h, 2w]
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Downsample(nn.Module):
    def __init__(self, width: int, ops: Operations) -> None:
        super().__init__()
        self.conv = ops.Conv2d(width, width, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, 2h, 2w] -> [B, c, h, w]
        return self.conv(F.pad(x, (0, 1, 0, 1)))  # the official padding: right and bottom only


class Blocks(nn.Module):
    """One level: residual blocks, with attention after each where there is any, then the resampling."""

    def __init__(self, width_in: int, level: Level, ops: Operations, up: bool) -> None:
        super().__init__()
        steps = zip((width_in, *level.widths), level.widths, strict=False)
        self.res = nn.ModuleList(Residual(a, b, ops) for a, b in steps)
        self.attn = nn.ModuleList(Attention(b, ops) for b in level.widths if level.attention)
        self.upsample = Upsample(level.widths[-1], ops) if level.resample and up else None
        self.downsample = Downsample(level.widths[-1], ops) if level.resample and not up else None

    def forward(self, x: Tensor) -> Tensor:  # [B, c, h, w], c and the resolution change
        for number, block in enumerate(self.res):
            x = block(x)
            if self.attn:
                x = self.attn[number](x)
        resample = self.upsample or self.downsample
        return x if resample is None else resample(x)


class Encoder(nn.Module):
    def __init__(self, half: Half, ops: Operations) -> None:
        super().__init__()
        inputs = [half.width] + [level.widths[-1] for level in half.levels]
        self.conv_in = ops.Conv2d(half.width_in, half.width, 3, padding=1)
        self.conv_blocks = nn.Sequential(
            *(Blocks(width, level, ops, up=False) for width, level in zip(inputs, half.levels, strict=False))
        )
        self.mid = _mid(inputs[-1], ops)
        self.norm_out = ops.GroupNorm(GROUPS, inputs[-1], eps=1e-6)
        self.conv_out = ops.Conv2d(inputs[-1], half.width_out, 3, padding=1)

    def forward(self, pixels: Tensor) -> Tensor:  # [B, 3, height, width] -> [B, z, rows, cols]
        x = self.mid(self.conv_blocks(self.conv_in(pixels)))
        return self.conv_out(F.silu(self.norm_out(x)))


class Decoder(nn.Module):
    def __init__(self, half: Half, ops: Operations) -> None:
        super().__init__()
        inputs = [half.width] + [level.widths[-1] for level in half.levels]
        self.conv_in = ops.Conv2d(half.width_in, half.width, 3, padding=1)
        self.mid = _mid(half.width, ops)
        self.conv_blocks = nn.Sequential(
            *(Blocks(width, level, ops, up=True) for width, level in zip(inputs, half.levels, strict=False))
        )
        self.norm_out = ops.GroupNorm(GROUPS, inputs[-1], eps=1e-6)
        self.conv_out = ops.Conv2d(inputs[-1], half.width_out, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:  # [B, z, rows, cols] -> [B, 3, height, width]
        x = self.conv_blocks(self.mid(self.conv_in(z)))
        return self.conv_out(F.silu(self.norm_out(x)))


def _mid(width: int, ops: Operations) -> nn.Sequential:
    return nn.Sequential(Residual(width, width, ops), Attention(width, ops), Residual(width, width, ops))


class VQGAN(nn.Module):
    """Both halves, with the 1 x 1 convolutions that lead to codebook rows of width `code`."""

    def __init__(self, code: int, encoder: Half | None, decoder: Half, ops: Operations) -> None:
        super().__init__()
        if encoder is not None:
            self.encoder = Encoder(encoder, ops)
            self.quant_conv = ops.Conv2d(encoder.width_out, code, 1)
        self.post_quant_conv = ops.Conv2d(code, decoder.width_in, 1)
        self.decoder = Decoder(decoder, ops)

    def decode_codes(self, codes: Tensor) -> Tensor:
        return self.decoder(self.post_quant_conv(codes))

    def encode_pixels(self, pixels: Tensor) -> Tensor:
        return self.quant_conv(self.encoder(pixels))


def recognise(checkpoint: Checkpoint) -> bool:
    return CODEBOOK in checkpoint and "decoder.conv_blocks.0.res.0.conv1.weight" in checkpoint


def load(
    checkpoint: Checkpoint, *, device: torch.device | str, dtype: torch.dtype, operations: Operations
) -> ImageTokenizer:
    vocabulary, code = checkpoint.shape(CODEBOOK, 2)
    decoder = _half(checkpoint, "decoder", "upsample")
    can_encode = any(name.startswith("encoder.") for name in checkpoint.tensors)
    encoder = _half(checkpoint, "encoder", "downsample") if can_encode else None
    factor = _factor(decoder)
    if encoder is not None and _factor(encoder) != factor:
        raise CheckpointError(
            f"{checkpoint.description}: the decoder grows by {factor}, the encoder shrinks {_factor(encoder)}"
        )
    if decoder.width_out != 3 or (encoder is not None and encoder.width_in != 3):
        raise CheckpointError(
            f"{checkpoint.description}: the pictures of this network do not have 3 channels"
        )
    with torch.device("meta"):
        module = VQGAN(code, encoder, decoder, operations)
    left_out = {CODEBOOK, "quantize.codebook_used"}  # the second counts use in training
    if encoder is None:
        left_out |= {"quant_conv.weight", "quant_conv.bias"}
    assign(module, checkpoint, device=device, dtype=dtype, ignore=left_out.__contains__)
    return ImageTokenizer(
        kind="llamagen",
        codebook=F.normalize(checkpoint.read(CODEBOOK).float(), dim=-1),
        factor=factor,
        module=module.eval(),
        dtype=dtype,
        can_encode=can_encode,
        name=checkpoint.description,
    )


def _factor(half: Half) -> int:
    return 2 ** sum(level.resample for level in half.levels)


def _half(checkpoint: Checkpoint, side: str, resample: str) -> Half:
    """Read the sizes off the tensors of `side`."""
    width, width_in = checkpoint.shape(f"{side}.conv_in.weight", 4)[:2]
    levels = []
    for number in range(checkpoint.count(f"{side}.conv_blocks.")):
        prefix = f"{side}.conv_blocks.{number}."
        blocks = range(max(1, checkpoint.count(f"{prefix}res.")))
        levels.append(
            Level(
                widths=tuple(checkpoint.shape(f"{prefix}res.{b}.conv1.weight", 4)[0] for b in blocks),
                attention=any(name.startswith(f"{prefix}attn.") for name in checkpoint.tensors),
                resample=f"{prefix}{resample}.conv.weight" in checkpoint,
            )
        )
    odd = [w for w in (width, *(w for level in levels for w in level.widths)) if w < 1 or w % GROUPS]
    if odd:
        raise CheckpointError(
            f"{checkpoint.description}: {odd[0]} channels do not divide into {GROUPS} groups"
        )
    return Half(width_in, width, checkpoint.shape(f"{side}.conv_out.weight", 4)[0], tuple(levels))
