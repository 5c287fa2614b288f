"""The image tokenizer while it is trained: the package's own stages around a spherical codebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model_loaders.families.builtin_vq import GROUPS, Residual

KEEP = 0.99  # of the codebook's running means
DEAD = 0.05  # a code used less often than this share of the mean is put where the encoder is


@dataclass(frozen=True)
class TokenizerSize:
    """Channels at full, half and quarter of the encoder's and decoder's resolutions, and the codebook."""

    encoder: tuple[int, int, int] = (32, 64, 128)
    decoder: tuple[int, int, int] = (160, 80, 40)
    codes: int = 4096
    code: int = 8


# The stages as the file's metadata lists them.
ENCODER = "unshuffle conv res conv2 res conv2 res res norm silu conv1x1".split()
DECODER = "conv res res res up conv res res up conv res norm silu conv shuffle".split()


class TokenizerNetwork(nn.Module):
    """`encoder`, `decoder` and `codebook` have the names and shapes that the package's loader reads."""

    def __init__(self, size: TokenizerSize) -> None:
        super().__init__()
        a, b, c = size.encoder
        self.encoder = _build(ENCODER, [(12, a), (a, b), (b, c), (c, size.code)])
        p, q, r = size.decoder
        self.decoder = _build(DECODER, [(size.code, p), (p, q), (q, r), (r, 12)])
        self.register_buffer("codebook", F.normalize(torch.randn(size.codes, size.code), dim=1))
        self.register_buffer("used", torch.ones(size.codes))  # running counts
        self.register_buffer("sums", self.codebook.clone())  # running sums of what fell on each code

    def encode(self, pixels: Tensor) -> Tensor:
        """[B, 3, H, W] in -1..1 -> unit vectors [B, c, H / 8, W / 8] float32."""
        return F.normalize(self.encoder(pixels).float(), dim=1)

    def nearest(self, z: Tensor) -> Tensor:
        """Unit vectors [B, c, h, w] -> codes [B, h, w] int64."""
        flat = z.permute(0, 2, 3, 1).flatten(0, 2)
        return (flat @ self.codebook.T).argmax(1).view(z.shape[0], *z.shape[2:])

    def decode(self, tokens: Tensor) -> Tensor:
        """Codes [B, h, w] -> pixels [B, 3, 8 h, 8 w], about -1..1."""
        return self.decoder(self.codebook[tokens].permute(0, 3, 1, 2))

    @torch.no_grad()
    def settle(self, z: Tensor, tokens: Tensor, rng: torch.Generator) -> None:
        """Move each code towards the mean of what fell on it, and codes that nothing falls on elsewhere."""
        flat = z.detach().permute(0, 2, 3, 1).flatten(0, 2)  # [cells, c]
        chosen = tokens.flatten()
        counts = torch.bincount(chosen, minlength=len(self.used)).to(flat.dtype)
        sums = torch.zeros_like(self.sums).index_add_(0, chosen, flat)
        self.used.mul_(KEEP).add_(counts, alpha=1 - KEEP)
        self.sums.mul_(KEEP).add_(sums, alpha=1 - KEEP)
        mean = self.used.mean()
        dead = (self.used < DEAD * mean).nonzero()[:, 0]
        if len(dead):
            # A few at a time, so that the newcomers do not all fall on one white cell.
            dead = dead[
                torch.randperm(len(dead), generator=rng)[: max(1, len(self.used) // 64)].to(dead.device)
            ]
            far = (flat * self.codebook[chosen]).sum(1)  # cosine to its own code
            worst = far.topk(min(len(flat), 4 * len(dead)), largest=False).indices
            taken = worst[torch.randperm(len(worst), generator=rng)[: len(dead)].to(worst.device)]
            dead = dead[: len(taken)]
            self.sums[dead] = flat[taken] * mean
            self.used[dead] = mean
        self.codebook.copy_(F.normalize(self.sums, dim=1))

    @torch.no_grad()
    def seed_codebook(self, z: Tensor, rng: torch.Generator, rounds: int = 10) -> None:
        """Spherical k-means over unit vectors z [cells, c]."""
        start = z[torch.randperm(len(z), generator=rng)[: len(self.codebook)].to(z.device)]
        self.codebook[: len(start)] = start
        for _ in range(rounds):
            chosen = torch.cat([(part @ self.codebook.T).argmax(1) for part in z.split(8192)])
            sums = torch.zeros_like(self.codebook).index_add_(0, chosen, z)
            counts = torch.bincount(chosen, minlength=len(self.codebook))
            empty = (counts == 0).nonzero()[:, 0]
            again = torch.randint(len(z), (len(empty),), generator=rng).to(z.device)
            sums[empty] = z[again]
            self.codebook.copy_(F.normalize(sums, dim=1))
        self.used.fill_(1.0)
        self.sums.copy_(self.codebook)


def _build(names: Sequence[str], widths: Sequence[tuple[int, int]]) -> nn.Sequential:
    """`widths` gives channels in and out for each convolution in turn."""
    todo = iter(widths)
    modules: list[nn.Module] = []
    width = 0
    for name in names:
        if name in ("conv", "conv2", "conv1x1"):
            before, width = next(todo)
            stride, size = (2, 3) if name == "conv2" else (1, 1 if name == "conv1x1" else 3)
            modules.append(nn.Conv2d(before, width, size, stride=stride, padding=size // 2))
        elif name == "res":
            modules.append(_residual(width))
        elif name == "norm":
            modules.append(nn.GroupNorm(GROUPS, width))
        else:
            plain = {
                "silu": nn.SiLU,
                "shuffle": lambda: nn.PixelShuffle(2),
                "unshuffle": lambda: nn.PixelUnshuffle(2),
                "up": lambda: nn.Upsample(scale_factor=2, mode="nearest"),
            }
            modules.append(plain[name]())
    return nn.Sequential(*modules)


def _residual(width: int) -> Residual:
    block = Residual(width, nn)
    nn.init.zeros_(block.conv2.weight)  # starts as the identity
    return block
