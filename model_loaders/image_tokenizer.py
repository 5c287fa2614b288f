"""Pictures from image tokens and back, whatever the network behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from .errors import GridError

LIVE_TENSORS = 8  # of the picture's resolution, alive at once
Operations = Any  # a namespace with Conv2d, GroupNorm, …: torch.nn, or the host's comfy.ops


class PictureNetwork(Protocol):
    """The two halves of a VQ network around its codebook. `c` is the width of a codebook row."""

    def decode_codes(self, codes: Tensor) -> Tensor:
        """[1, c, rows, cols] -> pixels [1, 3, rows * factor, cols * factor], about -1..1."""

    def encode_pixels(self, pixels: Tensor) -> Tensor:
        """[1, 3, height, width] in -1..1 -> [1, c, height / factor, width / factor]."""


@runtime_checkable
class StripNetwork(Protocol):
    """A network that can also work in less memory."""

    def decode_in_strips(self, codes: Tensor) -> Tensor:
        """As `decode_codes`, within rounding."""

    def encode_in_strips(self, pixels: Tensor) -> Tensor:
        """As `encode_pixels`, within rounding."""


@dataclass
class ImageTokenizer:
    """A codebook with its network. `module` holds the weights, for the host's memory management.

    The codebook is no part of the module: it is small, is used on the CPU, and stays in float32.
    """

    kind: str  # whose tokens: a model takes the tokenizer whose kind is its own `tokenizer_kind`
    codebook: Tensor  # [V, c] float32 CPU, as used: L2-normalised rows where the model says so
    factor: int  # pixels per token, each way
    module: torch.nn.Module  # a PictureNetwork
    dtype: torch.dtype  # of the network's arithmetic
    normalised: bool = True  # compare directions when encoding
    can_encode: bool = True
    name: str = field(default="image tokenizer")  # the file, for messages
    width: int = 128  # channels of the tensors that have the resolution of the picture
    within_model: bool = False  # whether that file is a model of its own

    @property
    def vocabulary(self) -> int:
        return self.codebook.shape[0]

    def picture_bytes(self, cells: int) -> int:
        """Memory that one picture of so many tokens is likely to need, whole, in either direction."""
        return cells * self.factor**2 * self.width * LIVE_TENSORS * self.dtype.itemsize

    def decode(
        self, tokens: Tensor, device: torch.device | str | None = None, strips: bool = False
    ) -> Tensor:
        """Tokens [B, rows, cols] int64 -> pictures [B, height, width, 3] float32 CPU in 0..1."""
        pixels = self.decode_raw(tokens, device, strips)
        return pixels.permute(0, 2, 3, 1).clamp(-1, 1).add(1).div(2).contiguous()

    @torch.no_grad()
    def decode_raw(
        self, tokens: Tensor, device: torch.device | str | None = None, strips: bool = False
    ) -> Tensor:
        """Tokens [B, rows, cols] -> what the network puts out, [B, 3, height, width] float32 CPU.

        `device` is where to compute, by default where the weights are; a host that streams weights says it.
        One picture at a time: memory grows with the pixels, and so no picture depends on its batch. `strips`
        saves memory where the network can; so does running out of it.
        """
        self._check_tokens(tokens)
        device = self._device(device)
        codes = self.codebook[tokens.cpu().long()].permute(0, 3, 1, 2)  # -> [B, c, rows, cols]
        pictures = []
        for one in codes.split(1):
            pixels, strips = self._run("decode", one.to(device, self.dtype), strips)
            pictures.append(pixels.float().cpu())
        return torch.cat(pictures)

    @torch.no_grad()
    def encode(
        self, images: Tensor, device: torch.device | str | None = None, strips: bool = False
    ) -> Tensor:
        """Pictures [B, height, width, 3] in 0..1 -> tokens [B, rows, cols] int64 CPU. See `decode_raw`."""
        self._check_images(images)
        device = self._device(device)
        codebook = self.codebook.to(device)
        tokens = []
        for one in images.split(1):
            pixels = one.to(device, torch.float32).permute(0, 3, 1, 2) * 2 - 1
            features, strips = self._run("encode", pixels.to(self.dtype), strips)  # [1, c, rows, cols]
            tokens.append(self._nearest(features.float().permute(0, 2, 3, 1), codebook).cpu())
        return torch.cat(tokens)

    def _run(self, what: str, x: Tensor, strips: bool) -> tuple[Tensor, bool]:
        """The network's decoder or encoder on one picture, and whether it had to go in strips: if one picture
        had, so will those that follow, for they have the same size."""
        network = self.module
        whole = {"decode": network.decode_codes, "encode": network.encode_pixels}[what]
        if not isinstance(network, StripNetwork):
            return whole(x), strips
        if not strips:
            try:
                return whole(x), False
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # Only now, because while the exception is handled, its frames hold the tensors.
        return {"decode": network.decode_in_strips, "encode": network.encode_in_strips}[what](x), True

    def _nearest(self, features: Tensor, codebook: Tensor) -> Tensor:
        """Features [1, rows, cols, c] -> index of the nearest codebook row, [1, rows, cols]."""
        flat = features.flatten(0, -2)
        if self.normalised:
            flat = F.normalize(flat, dim=-1)
        # |z - e|^2 = |z|^2 + |e|^2 - 2 z e, in the official order of terms: ties round the same way.
        distance = flat.pow(2).sum(1, keepdim=True) + codebook.pow(2).sum(1) - 2 * flat @ codebook.T
        return distance.argmin(1).view(features.shape[:-1])

    def _device(self, device: torch.device | str | None) -> torch.device:
        return next(self.module.parameters()).device if device is None else torch.device(device)

    def _check_tokens(self, tokens: Tensor) -> None:
        if tokens.ndim != 3 or not tokens.numel():
            shape = tuple(tokens.shape)
            raise GridError(f"{self.name}: tokens must be [images, rows, columns] and not empty, got {shape}")
        if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
            raise GridError(f"{self.name}: tokens must be whole numbers, got {tokens.dtype}")
        wrong = (tokens < 0) | (tokens >= self.vocabulary)
        if wrong.any():
            image, row, col = wrong.nonzero()[0].tolist()
            token = tokens[image, row, col].item()
            raise GridError(
                f"{self.name}: token {token} (image {image}, row {row}, column {col}) is not in the "
                f"codebook, which has 0..{self.vocabulary - 1}; {int(wrong.sum())} such tokens in all. "
                "Were they made by another model, or are they not all filled in (-1)?"
            )

    def _check_images(self, images: Tensor) -> None:
        if not self.can_encode:
            raise GridError(f"{self.name}: the file has no encoder, so pictures cannot be turned into tokens")
        if images.ndim != 4 or images.shape[-1] != 3 or not images.numel():
            shape = tuple(images.shape)
            raise GridError(f"{self.name}: pictures must be [images, height, width, 3], got {shape}")
        height, width = images.shape[1:3]
        if height % self.factor or width % self.factor:
            fitting = [max(side - side % self.factor, self.factor) for side in (width, height)]
            raise GridError(
                f"{self.name}: a picture of {width} x {height} pixels does not divide into tokens of "
                f"{self.factor} x {self.factor}; crop or scale it, to {fitting[0]} x {fitting[1]} for example"
            )
        if not torch.isfinite(images).all():
            raise GridError(f"{self.name}: the picture holds values that are not numbers (NaN or infinity)")


def is_out_of_memory(error: RuntimeError) -> bool:
    """CUDA has a class of its own for it; Apple's and the CPU's say it in words only."""
    text = str(error).lower()
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(
        words in text for words in ("out of memory", "not enough memory", "can't allocate memory")
    )
