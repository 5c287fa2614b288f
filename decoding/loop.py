"""The decoding loop: one forward, one verification, one redraft, one read by the host a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .codebook import Codebook
from .decoders import Decoder
from .run import Run
from .sampling import SamplingSettings
from .target import TargetModel
from .trace import DecodeResult, Trace


@dataclass(frozen=True)
class StepReport:
    """State of a run after a forward. `result` is there once, in the last report."""

    passes: int  # forwards so far
    filled: list[int]  # fixed tokens of each image
    cells: int  # tokens of one image
    trace: Trace
    _run: Run
    result: DecodeResult | None = None

    @property
    def total(self) -> int:
        """Tokens of the whole batch."""
        return self.cells * len(self.filled)

    def grids(self) -> Tensor:
        """Tokens so far, [B, rows, cols] int64 on the CPU, -1 where none is fixed. Waits for the device:
        throttle it."""
        return self._run.grids()


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

    prompts: what the target's `prefill` takes, one an image. seeds: 0 .. 2^64 - 1, one an image; an image
        depends on its own seed only.
    kept: [B, rows, cols] int64, tokens to keep, -1 where to decode.
    codebook: the image tokenizer's, for decoders that compare codes (GSD, LANTERN); keep it, it remembers
        neighbours.
    Changes nothing but the target's cache.
    Raises DecodingError (settings that cannot be decoded with; NonFiniteLogits while running).
    """
    if len(seeds) != len(prompts):
        raise ValueError(f"one seed an image: {len(prompts)} prompts, {len(seeds)} seeds")
    cells = target.grid.cells
    given = (
        np.full((len(seeds), cells), -1) if kept is None else kept.reshape(len(seeds), cells).cpu().numpy()
    )
    run = Run(target, decoder, sampling, list(seeds), given, codebook)
    logits = target.prefill(prompts, run.cache_slots)
    run.settle(logits[:, None], run.prefill_plan())
    while True:
        finished = not run.open
        result = DecodeResult(run.grids(), run.trace) if finished else None
        yield StepReport(run.trace.passes, run.filled(), cells, run.trace, run, result)
        if finished:
            return
        run.settle(*run.forward())


def run_to_end(reports: Iterator[StepReport]) -> DecodeResult:
    """Consume a decode and return its result."""
    result = None
    for report in reports:
        result = report.result
    if result is None:
        raise RuntimeError("the decode ended without a result")
    return result
