"""The image tokenizer of the built-in model: a small CNN, its stages listed in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..image_tokenizer import ImageTokenizer, Operations
from ..strict import assign

FAMILY = "builtin_vq"
GROUPS = 8  # of every GroupNorm


class Residual(nn.Module):
    def __init__(self, width: int, ops: Operations) -> None:
        super().__init__()
        self.norm1 = ops.GroupNorm(GROUPS, width)
        self.conv1 = ops.Conv2d(width, width, 3, padding=1)
        self.norm2 = ops.GroupNorm(GROUPS, width)
        self.conv2 = ops.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:  # [B, c, h, w]
        y = self.conv1(F.silu(self.norm1(x)))
        return x + self.conv2(F.silu(self.norm2(y)))


class Network(nn.Module):
    def __init__(self, encoder: list[nn.Module], decoder: list[nn.Module]) -> None:
        super().__init__()
        self.encoder = nn.Sequential(*encoder)
        self.decoder = nn.Sequential(*decoder)

    def decode_codes(self, codes: Tensor) -> Tensor:
        return self.decoder(codes)

    def encode_pixels(self, pixels: Tensor) -> Tensor:
        return self.encoder(pixels)


def recognises(checkpoint: Checkpoint) -> bool:
    return checkpoint.metadata.get("family") == FAMILY and "codebook" in checkpoint


def load(
    checkpoint: Checkpoint, *, device: torch.device | str, dtype: torch.dtype, operations: Operations
) -> ImageTokenizer:
    checkpoint.shape("codebook", 2)
    with torch.device("meta"):
        halves = [_stages(checkpoint, side, operations) for side in ("encoder", "decoder")]
        module = Network(*halves)
    assign(module, checkpoint, device=device, dtype=dtype, ignore={"codebook"}.__contains__)
    grows = [2 for stage in module.decoder if isinstance(stage, (nn.Upsample, nn.PixelShuffle))]
    return ImageTokenizer(
        kind="built-in",
        codebook=F.normalize(checkpoint.read("codebook").float(), dim=-1),
        factor=2 ** len(grows),
        module=module.eval(),
        dtype=dtype,
        name=checkpoint.description,
    )


def _stages(checkpoint: Checkpoint, side: str, ops: Operations) -> list[nn.Module]:
    """The modules that the metadata lists for `side`; module N takes the tensors `side`.N."""

    def conv(key: str, size: int, **options: int) -> nn.Module:
        width, width_in = checkpoint.shape(f"{key}.weight", 4)[:2]
        return ops.Conv2d(width_in, width, size, **options)

    def width_of(key: str) -> int:
        (width,) = checkpoint.shape(key, 1)
        if width < 1 or width % GROUPS:
            raise CheckpointError(
                f"{checkpoint.description}: {key}: {width} channels do not divide into {GROUPS} groups"
            )
        return width

    build: dict[str, Callable[[str], nn.Module]] = {
        "conv": lambda key: conv(key, 3, padding=1),
        "conv2": lambda key: conv(key, 3, padding=1, stride=2),
        "conv1x1": lambda key: conv(key, 1),
        "res": lambda key: Residual(width_of(f"{key}.norm1.weight"), ops),
        "norm": lambda key: ops.GroupNorm(GROUPS, width_of(f"{key}.weight")),
        "silu": lambda key: nn.SiLU(),
        "up": lambda key: nn.Upsample(scale_factor=2, mode="nearest"),
        "shuffle": lambda key: nn.PixelShuffle(2),
        "unshuffle": lambda key: nn.PixelUnshuffle(2),
    }
    try:
        names = json.loads(checkpoint.metadata.get(side, ""))
    except ValueError as error:
        raise CheckpointError(f"{checkpoint.description}: the list of {side} stages is damaged") from error
    listed = names if isinstance(names, list) else [names]
    unknown = [name for name in listed if not isinstance(name, str) or name not in build]
    if unknown:
        raise CheckpointError(f"{checkpoint.description}: unknown {side} stage {unknown[0]!r}")
    return [build[name](f"{side}.{number}") for number, name in enumerate(listed)]
