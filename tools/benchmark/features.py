"""Pictures as points: what the image tokenizer's encoder sees in them, before it rounds to codes.

A cell's features are the encoder's c numbers there, as a direction where the tokenizer compares directions.
Works for any tokenizer with an encoder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...model_loaders.image_tokenizer import ImageTokenizer
from ..builtin_model.drawings import load


@torch.inference_mode()
def features_of(tokenizer: ImageTokenizer, pixels: Tensor) -> np.ndarray:
    """Pictures [R, 3, height, width] in -1..1 -> features of their cells, [R, rows, cols, c] float32."""
    place = next(tokenizer.module.parameters()).device
    made = []
    for one in pixels.split(1):
        seen = tokenizer.module.encode_pixels(one.to(place, tokenizer.dtype)).float().permute(0, 2, 3, 1)
        made.append((F.normalize(seen, dim=-1) if tokenizer.normalised else seen).cpu().numpy())
    return np.concatenate(made)


def features_of_tokens(tokenizer: ImageTokenizer, tokens: np.ndarray, cols: int) -> np.ndarray:
    """Token grids [R, cells] -> the features of their pictures, [R, rows, cols, c] float32."""
    grids = torch.from_numpy(tokens).long().view(len(tokens), -1, cols)
    made = [features_of(tokenizer, tokenizer.decode_raw(grid).clamp(-1, 1)) for grid in grids.split(32)]
    return np.concatenate(made)


def pooled(features: np.ndarray) -> np.ndarray:
    """Mean and deviation over each quarter of the picture: [R, rows, cols, c] -> [R, 8c] float64.

    Few numbers, so that a covariance can be had from a few hundred pictures; with the quarters they still say
    where things are, with the deviation how busy it is there.
    """
    _, rows, cols, _ = features.shape
    halves = (
        (slice(None, rows // 2), slice(rows // 2, None)),
        (slice(None, cols // 2), slice(cols // 2, None)),
    )
    quarters = [features[:, down, across].astype(np.float64) for down in halves[0] for across in halves[1]]
    return np.concatenate([pool for q in quarters for pool in (q.mean((1, 2)), q.std((1, 2)))], axis=1)


def features_of_drawings(tokenizer: ImageTokenizer, folder: Path) -> tuple[list[str], np.ndarray]:
    """Names and features of the drawings in a folder that `builtin_model/make.py data` made."""
    drawings = load(folder)
    numbers = np.array_split(np.arange(len(drawings)), max(1, len(drawings) // 64))
    parts = [features_of(tokenizer, drawings.pictures(part)) for part in numbers]
    return [one.name for one in drawings.about], np.concatenate(parts)


def nearest(features: np.ndarray, drawings: np.ndarray) -> np.ndarray:
    """Index of the nearest drawing, cell by cell: [R] int64."""
    x, y = (a.reshape(len(a), -1).astype(np.float64) for a in (features, drawings))
    return ((x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T).argmin(1)
