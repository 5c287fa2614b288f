"""What a decode leaves behind: the tokens, and the history of how they came about."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from .promises import Promise


@dataclass
class Trace:
    """History of a run. A pass is one forward of the target model; the prefill counts as one, a guided pair
    as one."""

    decoder: str
    promise: Promise  # of this run: tokens given in the middle of a picture may have weakened the decoder's
    seeds: list[int]
    # [B, rows, cols] int64: the pass that fixed each token, 0 where none has (yet) or it was given.
    step_of: np.ndarray
    # Per pass: accepted drafts of each image, -1 where idle.
    accepted: list[list[int]] = field(default_factory=list)
    # [B, rows, cols] float32, bits: of the law that each token was fixed under; once the run has ended.
    entropy: np.ndarray | None = None

    def add_pass(
        self,
        image: np.ndarray,  # [L] of each lane
        working: np.ndarray,  # [L] bool: the lane was not done
        accepted: np.ndarray,  # [L] drafts
    ) -> None:
        history = np.full(self.batch, -1)
        history[image[working]] = 0
        np.add.at(history, image, accepted)
        self.accepted.append(history.tolist())

    def fix(self, image: np.ndarray, cell: np.ndarray) -> None:
        """The latest pass fixed these cells of these images."""
        self.step_of.reshape(self.batch, -1)[image, cell] = self.passes

    @property
    def passes(self) -> int:
        """Forwards of the whole batch."""
        return len(self.accepted)

    @property
    def batch(self) -> int:
        return len(self.seeds)

    @property
    def cells(self) -> int:
        """Tokens of one picture."""
        return int(self.step_of[0].size)

    @property
    def passes_of(self) -> list[int]:
        """Passes until each image's last token; 1 where all tokens were given."""
        return self.step_of.reshape(self.batch, -1).max(1).clip(min=1).tolist()

    @property
    def tokens_of(self) -> list[int]:
        """Tokens that were decoded, not given, of each image."""
        return np.count_nonzero(self.step_of.reshape(self.batch, -1), axis=1).tolist()

    @property
    def autoregressive_passes(self) -> int:
        """Passes that one token a pass needs for the same tokens, at most, of all images."""
        return max(self.autoregressive_passes_of)

    @property
    def autoregressive_passes_of(self) -> list[int]:
        """The same of each image. The prefill gives the first token, unless that was given: then the pass
        that feeds what was given does."""
        steps = self.step_of.reshape(self.batch, -1)
        first = np.where(steps > 0, steps, steps.max() + 1).min(1)
        waited = np.where(steps.any(1), first - 1, 1)
        return (np.array(self.tokens_of) + waited).tolist()

    @property
    def step_compression(self) -> float:
        """Passes of step-by-step decoding over passes used, mean over the images."""
        return float(np.mean(np.array(self.autoregressive_passes_of) / self.passes_of))


@dataclass(frozen=True)
class DecodeResult:
    """Finished token grids and how they were made."""

    tokens: Tensor  # [B, rows, cols] int64 on the CPU
    trace: Trace
