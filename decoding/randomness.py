"""Random numbers of an image: the same on every device, in every batch, for every decoder.

All of them come from Philox counter generators (Salmon et al. 2011) on the CPU, keyed with all 64 bits of the
image's seed. No global generator is read or changed. An image has three streams:

* shared noise: one vector [V] a grid cell, keyed by (seed, cell) and by nothing else, so that any decoder
  that meets the cell, at any time, meets the same noise;
* uniforms: one sequence that a decoder consumes step by step;
* Gaussian noise: one vector a grid cell, keyed as the shared noise is, for drafts that begin as noise.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.random import Generator, Philox
from torch import Tensor

from .device import upload

SHARED_NOISE, UNIFORMS, GAUSSIAN = 0, 1, 2  # second half of the 128-bit key
SEED_RANGE = 2**64


def image_seeds(seed: int, batch: int) -> list[int]:
    """Seed of each image of a batch: image i alone, with this seed, is the same picture."""
    return [(seed + i) % SEED_RANGE for i in range(batch)]


def _philox(seed: int, stream: int, cell: int = 0) -> Philox:
    key = np.array([seed % SEED_RANGE, stream], np.uint64)
    return Philox(key=key, counter=np.array([0, 0, cell, 0], np.uint64))


def exponential_noise(seed: int, cell: int, vocabulary: int) -> np.ndarray:
    """Exponential(1) variates E of one grid cell: [V] float64, finite and above 0.

    `argmax(log q + G)` with Gumbel noise G and `argmax(q / E)` with E = exp(-G) pick the same token, whose
    law is q (the Gumbel-max trick); the second form needs no logarithm of the law.
    """
    raw = _philox(seed, SHARED_NOISE, cell).random_raw(vocabulary)
    # Off 0 and off 1, exactly representable.
    uniform = ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return -np.log(uniform)


def gaussian_noise(seed: int, cell: int, width: int) -> np.ndarray:
    """Standard normal variates of one grid cell, [width] float32, keyed by (seed, cell) alone."""
    return Generator(_philox(seed, GAUSSIAN, cell)).standard_normal(width, np.float32)


class UniformStream:
    """Uniform numbers on [0, 1) of one image, in the order of its own steps."""

    def __init__(self, seed: int) -> None:
        self._generator = Generator(_philox(seed, UNIFORMS))

    def take(self, count: int) -> np.ndarray:
        """The next `count` numbers: float32, multiples of 2^-24."""
        return self._generator.random(count, np.float32)


class SharedNoise:
    """Noise rows of the cells in use, made once each and kept on the model's device until the cell is
    fixed."""

    def __init__(self, seeds: list[int], vocabulary: int, dtype: torch.dtype, device: torch.device) -> None:
        self._seeds, self._vocabulary = seeds, vocabulary
        self._rows = torch.empty(0, vocabulary, dtype=dtype, device=device)
        self._row_of: list[dict[int, int]] = [{} for _ in seeds]  # of each image: cell -> row
        self._free: list[int] = []

    def at(
        self,
        images: np.ndarray,  # [L] int64, index into the seeds
        cells: np.ndarray,  # [L, M] int64
    ) -> Tensor:
        """Exponential noise of each image's cells: [L, M, V]."""
        wanted = list(zip(images.tolist(), cells.tolist(), strict=True))
        missing = {
            (image, cell): None for image, row in wanted for cell in row if cell not in self._row_of[image]
        }
        if missing:
            self._make(list(missing))
        index = np.array([[self._row_of[image][cell] for cell in row] for image, row in wanted])
        return self._rows[upload(index, self._rows.device)]

    def _make(self, keys: list[tuple[int, int]]) -> None:
        fresh = np.stack(
            [exponential_noise(self._seeds[image], cell, self._vocabulary) for image, cell in keys]
        )
        lacking = len(keys) - len(self._free)
        if lacking > 0:
            size = self._rows.shape[0]
            self._rows = torch.cat([self._rows, self._rows.new_empty(lacking, self._vocabulary)])
            self._free.extend(range(size, size + lacking))
        taken = [self._free.pop() for _ in keys]
        kind = np.float64 if self._rows.dtype == torch.float64 else np.float32  # some devices have no float64
        device = self._rows.device
        self._rows[upload(np.array(taken), device)] = upload(fresh.astype(kind), device)
        for (image, cell), row in zip(keys, taken, strict=True):
            self._row_of[image][cell] = row

    def forget(self, image: int, before: int) -> None:
        """Give back the rows of an image's cells below `before`: they are fixed."""
        rows = self._row_of[image]
        for cell in [cell for cell in rows if cell < before]:
            self._free.append(rows.pop(cell))
