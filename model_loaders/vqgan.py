"""The network of VQ image tokenizers: residual CNN, attention at the lowest resolution.

One topology serves LlamaGen, Janus, Chameleon and, with a decoder that is told the codes at every norm, MoVQ.
Names of the modules are those of LlamaGen's files; `vq_files` knows the other spellings and reads the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import strips
from .image_tokenizer import Operations
from .vq_norms import apply_norm, make_norm


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
    guide: int = 0  # channels of the codes that guide every norm, 0 for plain norms

    @property
    def factor(self) -> int:
        """Pixels per token, each way."""
        return 2 ** sum(level.resample for level in self.levels)


class Residual(nn.Module):
    def __init__(self, width_in: int, width: int, ops: Operations, guide: int = 0) -> None:
        super().__init__()
        self.norm1 = make_norm(width_in, guide, ops)
        self.conv1 = ops.Conv2d(width_in, width, 3, padding=1)
        self.norm2 = make_norm(width, guide, ops)
        self.conv2 = ops.Conv2d(width, width, 3, padding=1)
        self.nin_shortcut = ops.Conv2d(width_in, width, 1) if width_in != width else None

    def forward(self, x: Tensor, guide: Tensor | None = None) -> Tensor:
        """[B, width_in, h, w] -> [B, width, h, w]"""
        y = self.conv1(F.silu(apply_norm(self.norm1, x, guide), inplace=True))
        y = self.conv2(F.silu(apply_norm(self.norm2, y, guide), inplace=True))
        return y.add_(self.shortcut(x))

    def shortcut(self, x: Tensor) -> Tensor:
        return x if self.nin_shortcut is None else self.nin_shortcut(x)


class Attention(nn.Module):
    """One head over all places of the picture."""

    def __init__(self, width: int, ops: Operations, guide: int = 0) -> None:
        super().__init__()
        self.norm = make_norm(width, guide, ops)
        self.q = ops.Conv2d(width, width, 1)
        self.k = ops.Conv2d(width, width, 1)
        self.v = ops.Conv2d(width, width, 1)
        self.proj_out = ops.Conv2d(width, width, 1)

    def forward(self, x: Tensor, guide: Tensor | None = None, queries: int = 0) -> Tensor:
        """[B, c, h, w]; `queries` at a time, by default all"""
        y = apply_norm(self.norm, x, guide)
        # [B, c, h, w] -> [B, 1, h w, c]
        q, k, v = (f(y).flatten(2).transpose(1, 2)[:, None] for f in (self.q, self.k, self.v))
        some = q.split(queries or q.shape[2], dim=2)
        y = torch.cat([F.scaled_dot_product_attention(part, k, v) for part in some], dim=2)
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

    def __init__(self, width_in: int, level: Level, ops: Operations, up: bool, guide: int = 0) -> None:
        super().__init__()
        steps = zip((width_in, *level.widths), level.widths, strict=False)
        self.res = nn.ModuleList(Residual(a, b, ops, guide) for a, b in steps)
        self.attn = nn.ModuleList(Attention(b, ops, guide) for b in level.widths if level.attention)
        self.upsample = Upsample(level.widths[-1], ops) if level.resample and up else None
        self.downsample = Downsample(level.widths[-1], ops) if level.resample and not up else None

    def forward(self, x: Tensor, guide: Tensor | None = None) -> Tensor:
        """[B, c, h, w], c and the resolution change"""
        for number, block in enumerate(self.res):
            x = block(x, guide)
            if self.attn:
                x = self.attn[number](x, guide)
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
        self.norm_out = make_norm(inputs[-1], 0, ops)
        self.conv_out = ops.Conv2d(inputs[-1], half.width_out, 3, padding=1)

    def forward(self, pixels: Tensor) -> Tensor:  # [B, 3, height, width] -> [B, z, rows, cols]
        x = self.conv_blocks(self.conv_in(pixels))
        for block in self.mid:
            x = block(x)
        return self.conv_out(F.silu(self.norm_out(x), inplace=True))


class Decoder(nn.Module):
    def __init__(self, half: Half, ops: Operations) -> None:
        super().__init__()
        inputs = [half.width] + [level.widths[-1] for level in half.levels]
        steps = zip(inputs, half.levels, strict=False)
        self.conv_in = ops.Conv2d(half.width_in, half.width, 3, padding=1)
        self.mid = _mid(half.width, ops, half.guide)
        self.conv_blocks = nn.ModuleList(Blocks(w, level, ops, True, half.guide) for w, level in steps)
        self.norm_out = make_norm(inputs[-1], half.guide, ops)
        self.conv_out = ops.Conv2d(inputs[-1], half.width_out, 3, padding=1)

    def forward(self, z: Tensor, guide: Tensor | None) -> Tensor:
        """[B, z, rows, cols] -> [B, 3, height, width]; `guide` [B, g, rows, cols] where norms are guided"""
        x = self.conv_in(z)
        for block in (*self.mid, *self.conv_blocks):
            x = block(x, guide)
        return self.conv_out(F.silu(apply_norm(self.norm_out, x, guide), inplace=True))


def _mid(width: int, ops: Operations, guide: int = 0) -> nn.ModuleList:
    outer = (Residual(width, width, ops, guide) for _ in range(2))
    return nn.ModuleList((next(outer), Attention(width, ops, guide), next(outer)))


class VQGAN(nn.Module):
    """Both halves, with the 1 x 1 convolutions that lead to codebook rows of width `code`."""

    def __init__(self, code: int, encoder: Half | None, decoder: Half, ops: Operations) -> None:
        super().__init__()
        if encoder is not None:
            self.encoder = Encoder(encoder, ops)
            self.quant_conv = ops.Conv2d(encoder.width_out, code, 1)
        self.post_quant_conv = ops.Conv2d(code, decoder.width_in, 1)
        self.decoder = Decoder(decoder, ops)
        self.guided = decoder.guide > 0

    def decoder_inputs(self, codes: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.post_quant_conv(codes), codes if self.guided else None

    def decode_codes(self, codes: Tensor) -> Tensor:
        return self.decoder(*self.decoder_inputs(codes))

    def decode_in_strips(self, codes: Tensor, numbers: int = strips.NUMBERS) -> Tensor:
        """The same within rounding, in far less memory and a little more time."""
        return strips.decode(self.decoder, *self.decoder_inputs(codes), numbers)

    def features(self, encoded: Tensor) -> Tensor:
        """What the encoder puts out -> what is compared with codebook rows."""
        return self.quant_conv(encoded)

    def encode_pixels(self, pixels: Tensor) -> Tensor:
        return self.features(self.encoder(pixels))

    def encode_in_strips(self, pixels: Tensor, numbers: int = strips.NUMBERS) -> Tensor:
        return self.features(strips.encode(self.encoder, pixels, numbers))
