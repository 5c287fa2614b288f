"""How far a decoder's pictures are from step-by-step decoding's: the statistics.

Each takes sets of R pictures, and weights [R]: how often each picture counts, all 1 in the figure itself, a
resample's counts in a bootstrap. All are of samples, so that equal laws do not give 0: the figure for two
step-by-step sets of the same size, the noise floor, has to stand beside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def total_variation(
    x: np.ndarray,  # token grids [R, cells] int
    y: np.ndarray,  # [R', cells]
    x_weights: np.ndarray,
    y_weights: np.ndarray,
    vocabulary: int,
) -> float:
    """Total variation of the two token histograms of a cell, 0 to 1, mean over the cells."""
    cells = x.shape[1]
    place = np.arange(cells) * vocabulary
    size = cells * vocabulary
    shares = [
        np.bincount((grids + place).ravel(), np.repeat(weights / weights.sum(), cells), size)
        for grids, weights in ((x, x_weights), (y, y_weights))
    ]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum()) / cells


def frechet(x: np.ndarray, y: np.ndarray, x_weights: np.ndarray, y_weights: np.ndarray) -> float:
    """Squared Fréchet distance of the Gaussians with the means and covariances of two sets of points [R, d].

    |m - n|^2 + tr(C + D - 2 (C D)^(1/2)); of two Gaussians it is the squared Wasserstein-2 distance.
    """
    mean_x, cov_x = _moments(x, x_weights)
    mean_y, cov_y = _moments(y, y_weights)
    return float(
        ((mean_x - mean_y) ** 2).sum() + np.trace(cov_x) + np.trace(cov_y) - 2 * _root_trace(cov_x, cov_y)
    )


def _moments(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = weights.sum()
    mean = weights @ points / total
    centred = points - mean
    return mean, (centred * weights[:, None]).T @ centred / (total - 1)


def _root_trace(c: np.ndarray, d: np.ndarray) -> float:
    """tr((C D)^(1/2)), by the eigenvalues of the symmetric C^(1/2) D C^(1/2)."""
    values, vectors = np.linalg.eigh(c)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    return float(np.sqrt(np.linalg.eigvalsh(root @ d @ root).clip(min=0)).sum())


def bootstrap_errors(
    statistics: Callable[[np.random.Generator], np.ndarray], resamples: int, seed: int = 0
) -> np.ndarray:
    """Standard deviation of `statistics` of one resample, each drawn with the generator that it is given."""
    rng = np.random.Generator(np.random.Philox(seed))
    return np.std([statistics(rng) for _ in range(resamples)], axis=0, ddof=1)
