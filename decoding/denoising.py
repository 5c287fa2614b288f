"""Drafts that begin as noise in the space of token embeddings and lose it over some passes (SJD2, arXiv
2510.08994)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from .device import upload
from .drafts import Drafts, Trajectories
from .errors import DecodingError
from .initialisers import Frontier, UniformToken
from .randomness import gaussian_noise
from .target import DenoisingModel

MOST_STEPS = 64
RHO = 7.0  # of Karras et al. 2022

Share = TypeVar("Share", np.ndarray, Tensor)


@dataclass(frozen=True)
class GaussianNoise:
    """Pure noise, and a token that nobody sees before it is drawn again; `steps` passes until a draft is fed
    as its token."""

    steps: int
    draws: ClassVar[bool] = UniformToken.draws

    @property
    def name(self) -> str:
        return f"noise, {self.steps} steps"

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MOST_STEPS:
            raise DecodingError(f"denoising takes 1 to {MOST_STEPS} steps, got {self.steps}")

    def initialise(self, frontier: Frontier) -> Drafts:
        return UniformToken().initialise(frontier)

    def levels(self, smallest: float, largest: float) -> np.ndarray:
        """[steps + 1] float32 by the passes that are left: 0, then rising to `largest`."""
        share = np.linspace(1, 0, self.steps)[::-1]
        return np.concatenate([[0.0], noise_level(share, smallest, largest)]).astype(np.float32)


def noise_level(share: Share, smallest: float, largest: float) -> Share:
    """Level at each share, 0 to 1, of the way from `smallest` to `largest` (Karras et al., arXiv 2206.00364,
    eq. 5)."""
    low, high = smallest ** (1 / RHO), largest ** (1 / RHO)
    return (low + share * (high - low)) ** RHO


def denoising_model(target: Any) -> DenoisingModel:
    """The target as what it has to be; DecodingError where it is not."""
    if not isinstance(target, DenoisingModel):
        raise DecodingError(
            "drafts that begin as noise (SJD2) need weights that were trained to read noise; this model's "
            "were not. Choose another decoder: SJD needs no training"
        )
    return target


def start_trajectories(
    seeds: Sequence[int],  # of each lane's image: L
    cells: np.ndarray,  # [L, W] int64
    wanted: np.ndarray,  # [L, W] bool: which begin now
    steps: int,
    level: np.float32,  # of pure noise
    width: int,  # E
    device: torch.device,
) -> Trajectories:
    """Pure noise where wanted. It is keyed by (seed, cell) and by nothing else."""
    noise = np.zeros((*cells.shape, width), np.float32)
    for lane, column in zip(*np.nonzero(wanted), strict=True):
        noise[lane, column] = gaussian_noise(seeds[lane], int(cells[lane, column]), width)
    return Trajectories(upload(noise * level, device), upload(np.where(wanted, steps, 0), device))


def denoised(
    drafts: Trajectories,
    guesses: Tensor,  # [L, W, E] clean embeddings of the tokens just drawn
    levels: Tensor,  # [steps + 1] float
) -> Trajectories:
    """One step along the line from each embedding to its guess: the noise shrinks as the levels do (the
    deterministic step of Song et al., arXiv 2010.02502, in Karras et al.'s terms)."""
    left = (drafts.left - 1).clamp(min=0)
    shrinking = (levels[left] / levels[drafts.left].clamp(min=1e-12))[..., None]
    return Trajectories(torch.lerp(guesses, drafts.embeddings, shrinking), left)
