"""Training of the image tokenizer: first as a plain autoencoder, then with its codebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .drawings import Drawings
from .loop import Plan, train
from .precision import half_where_fast
from .tokenizer_network import TokenizerNetwork, TokenizerSize

FLOOR = 2e-4  # of the squared error that the loss looks at; 43 dB
COMMIT = 0.25
SHIFT = 8  # pixels: drawings are moved, so that the token grid falls on them in all ways
LOOKED_AT = 192  # held-out drawings


@dataclass(frozen=True)
class TokenizerPlan:
    plan: Plan
    size: TokenizerSize
    batch: int = 16
    rate: float = 1e-3
    free_steps: int = 700  # without the codebook
    seed_cells: int = 100_000


class TokenizerJob:
    def __init__(self, drawings: Drawings, settings: TokenizerPlan, device: torch.device) -> None:
        torch.manual_seed(settings.plan.seed)
        self.settings, self.drawings, self.device = settings, drawings, device
        self.network = TokenizerNetwork(settings.size).to(device, memory_format=torch.channels_last)
        matrices = list(self.network.parameters())
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(matrices, lr=settings.rate, betas=(0.9, 0.99), weight_decay=1e-4)
        ]
        held = [number for number, drawing in enumerate(drawings.about) if drawing.held_out]
        self.seen = [number for number, drawing in enumerate(drawings.about) if not drawing.held_out]
        # Spread over all styles.
        self.held = held[:: max(1, len(held) // LOOKED_AT)] or self.seen[:1]

    def loss(self, step: int, rng: torch.Generator) -> Tensor:
        if step == self.settings.free_steps:
            self.network.seed_codebook(self._cells(rng), rng)
        chosen = torch.randint(len(self.seen), (self.settings.batch,), generator=rng).tolist()
        pixels = _moved(self._pixels([self.seen[number] for number in chosen]), rng)
        with half_where_fast(self.device):
            z = self.network.encode(pixels)
        commitment = z.new_zeros(())
        codes = z
        if step >= self.settings.free_steps:
            tokens = self.network.nearest(z.detach())
            nearest = self.network.codebook[tokens].permute(0, 3, 1, 2)
            commitment = (z - nearest).square().sum(1).mean()
            codes = z + (nearest - z).detach()
            self.network.settle(z, tokens, rng)
        with half_where_fast(self.device):
            made = self.network.decoder(codes)
        error = (made.float() - pixels).square().mean((1, 2, 3))
        # The logarithm is what PSNR averages: easy drawings count as much as hard ones.
        return (error + 4 * FLOOR).log().mean() + COMMIT * commitment

    def look(self, averaged: nn.Module, step: int) -> dict[str, float]:
        assert isinstance(averaged, TokenizerNetwork)
        quantised = step > self.settings.free_steps
        figures = {"held-out dB": psnr(averaged, self._pixels(self.held), quantised)}
        some = self.seen[:: max(1, len(self.seen) // len(self.held))]
        figures["trained dB"] = psnr(averaged, self._pixels(some), quantised)
        if quantised:
            used = self.network.used
            figures["codes in use"] = float((used > 0.05 * used.mean()).sum())
        return figures

    def _pixels(self, numbers: list[int]) -> Tensor:
        """[B, 3, side, side] in -1..1."""
        pictures = self.drawings.pictures(numbers).to(self.device)
        return pictures.contiguous(memory_format=torch.channels_last)

    @torch.no_grad()
    def _cells(self, rng: torch.Generator) -> Tensor:
        """Unit vectors [cells, c] of random drawings; empty cells, which are most, are left out."""
        wanted, found = self.settings.seed_cells, []
        for number in torch.randperm(len(self.seen), generator=rng).split(16):
            pixels = _moved(self._pixels([self.seen[i] for i in number.tolist()]), rng)
            z = self.network.encode(pixels).permute(0, 2, 3, 1)
            spread = F.max_pool2d(pixels, 8) + F.max_pool2d(-pixels, 8)  # lightest less darkest
            found.append(z[spread.amax(1) > 0.02])
            if sum(map(len, found)) >= wanted:
                break
        return torch.cat(found)


@torch.no_grad()
def psnr(network: TokenizerNetwork, pixels: Tensor, quantised: bool = True) -> float:
    """Mean over pictures [B, 3, H, W] in -1..1 of the peak signal-to-noise ratio after clamping, in dB."""
    found = []
    for part in pixels.split(16):
        z = network.encode(part)
        made = network.decode(network.nearest(z)) if quantised else network.decoder(z)
        error = (made.float().clamp(-1, 1) - part).square().mean((1, 2, 3))
        found.append(-10 * (error / 4).clamp_min(1e-8).log10())
    return float(torch.cat(found).mean())


def train_tokenizer(folder: Path, drawings: Drawings, settings: TokenizerPlan, device: torch.device) -> bool:
    """The `tokenizer` command; False where it was stopped."""
    return train(folder, TokenizerJob(drawings, settings, device), settings.plan)


def _moved(pixels: Tensor, rng: torch.Generator) -> Tensor:
    """Each picture moved by a few pixels, white coming in, and every other one mirrored."""
    side = pixels.shape[-1]
    padded = F.pad(pixels, (SHIFT,) * 4, value=1.0)
    moved = []
    for picture in padded:
        down, right, mirror = torch.randint(0, 2 * SHIFT + 1, (3,), generator=rng).tolist()
        piece = picture[:, down : down + side, right : right + side]
        moved.append(piece.flip(2) if mirror % 2 else piece)
    return torch.stack(moved).contiguous(memory_format=torch.channels_last)
