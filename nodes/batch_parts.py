"""A batch in parts, where the memory does not hold all of it. No picture depends on its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from ..decoding import DecodeResult, Trace
from .errors import is_out_of_memory


def in_parts(
    batch: int, most: int, run: Callable[[slice], DecodeResult], tidy: Callable[[], None]
) -> list[DecodeResult]:
    """Results of `run` over slices of 0 .. batch - 1, of `most` pictures each at first.

    Where memory runs out nevertheless, what is finished stays, `tidy` lets go of what is left over, and parts
    of half the size go on. One picture that does not fit raises what it raised.
    """
    results: list[DecodeResult] = []
    done, size = 0, max(1, min(batch, most))
    while done < batch:
        part = slice(done, min(done + size, batch))
        result = attempt(run, part)
        if result is None:
            size = (part.stop - part.start + 1) // 2
            tidy()
            continue
        results.append(result)
        done = part.stop
    return results


def attempt(run: Callable[[slice], DecodeResult], part: slice) -> DecodeResult | None:
    """None where the memory did not suffice for several pictures.

    The next try is the caller's: as long as the exception is handled, its frames hold the tensors.
    """
    try:
        return run(part)
    except (MemoryError, RuntimeError) as error:
        if part.stop - part.start == 1 or not is_out_of_memory(error):
            raise
    return None


def joined(results: Sequence[DecodeResult]) -> DecodeResult:
    """As if the parts had run together: pass by pass, each picture with its own history."""
    if len(results) == 1:
        return results[0]
    traces = [result.trace for result in results]
    longest = max(trace.passes for trace in traces)
    accepted = [
        [n for t in traces for n in (t.accepted[i] if i < t.passes else [-1] * t.batch)]
        for i in range(longest)
    ]
    entropies = [trace.entropy for trace in traces if trace.entropy is not None]
    trace = Trace(
        decoder=traces[0].decoder,
        promise=max((trace.promise for trace in traces), key=list(type(traces[0].promise)).index),
        seeds=[seed for trace in traces for seed in trace.seeds],
        step_of=np.concatenate([trace.step_of for trace in traces]),
        accepted=accepted,
        entropy=np.concatenate(entropies) if len(entropies) == len(traces) else None,
    )
    return DecodeResult(torch.cat([result.tokens for result in results]), trace)
