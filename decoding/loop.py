"""The decoding loop: one forward, one verification, one redraft, one read by the host a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .codebook import Codebook
from .decoders import Decoder
from .denoising_run import DenoisingRun
from .errors import DecodingError
from .run import Run
from .sampling import SamplingSettings
from .target import TargetModel
from .trace import DecodeResult, Trace
from .tree import TreeWindow
from .tree_run import TreeRun


@dataclass(frozen=True)
class StepReport:
    """State of a run after a forward. `result` is there once, in the last report."""

    passes: int  # forwards so far
    filled: list[int]  # fixed tokens of each image
    run: Run
    result: DecodeResult | None = None

    @property
    def trace(self) -> Trace:
        """History of the run; it grows with the run."""
        return self.run.trace

    @property
    def cells(self) -> int:
        """Tokens of one image."""
        return self.trace.cells

    @property
    def total(self) -> int:
        """Tokens of the whole batch."""
        return self.cells * len(self.filled)

    def grids(self) -> Tensor:
        """Tokens so far, [B, rows, cols] int64 on the CPU, -1 where none is fixed. Waits for the device."""
        return self.run.grids()


def decode(
    target: TargetModel,
    prompts: Sequence[Any],
    decoder: Decoder,
    sampling: SamplingSettings,
    seeds: Sequence[int],
    kept: Tensor | None = None,
    codebook: Codebook | None = None,
) -> Iterator[StepReport]:
    """Decode one token grid a prompt; yields a StepReport after each forward, the last with the result.

    prompts: what the target's `prefill` takes, one an image.
    seeds: 0 .. 2^64 - 1, one an image; an image depends on its own seed only.
    kept: [B, rows, cols] int64, tokens to keep, -1 where to decode. The trace's promise is the decoder's only
        where no kept token lies behind a decoded one.
    codebook: the image tokenizer's, for decoders that compare codes (GSD, LANTERN); it remembers neighbours.
    Changes nothing but the target's cache. Raises DecodingError where it cannot decode with what is given,
    and NonFiniteLogits while running.
    """
    batch, grid = len(seeds), target.grid
    if batch != len(prompts) or batch == 0:
        raise DecodingError(
            f"one seed an image, one image at least: got {len(prompts)} prompts, {batch} seeds"
        )
    given = np.full((batch, grid.cells), -1)
    if kept is not None:
        if kept.shape != (batch, grid.rows, grid.cols):
            wanted = f"{batch} x {grid.rows} x {grid.cols}"
            raise DecodingError(f"kept tokens must have the shape {wanted}, got {tuple(kept.shape)}")
        if not -1 <= int(kept.min()) <= int(kept.max()) < target.vocabulary:
            raise DecodingError(f"kept tokens must be -1 or codes below {target.vocabulary}")
        given = kept.reshape(batch, grid.cells).cpu().numpy()
    run = _kind_of_run(decoder)(target, decoder, sampling, list(seeds), given, codebook)
    run.prefill(prompts)
    while not run.finished:
        yield StepReport(run.trace.passes, run.filled(), run)
        run.step()
    yield StepReport(run.trace.passes, run.filled(), run, run.result())


def _kind_of_run(decoder: Decoder) -> type[Run]:
    if isinstance(decoder.schedule, TreeWindow):
        return TreeRun
    return DenoisingRun if decoder.denoises else Run


def run_to_end(reports: Iterator[StepReport]) -> DecodeResult:
    """Consume a decode and return its result."""
    result = None
    for report in reports:
        result = report.result
    if result is None:
        raise RuntimeError("the decode ended without a result")
    return result
