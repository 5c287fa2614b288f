"""What a run did, as lines for people and as facts for programs."""

from __future__ import annotations

from typing import Any

from ..decoding import Decoder, Trace
from .fixed_tokens import APPROXIMATE_NOTE
from .run_settings import RunSettings


def progress_line(fixed: int, total: int, passes: int, pictures: int, given: int = 0) -> str:
    """While it runs, for example: 96/256 tokens · 12 passes · 8.0 tokens a pass (of one picture). `given` of
    the fixed tokens were not decoded."""
    counted = "1 pass" if passes == 1 else f"{passes} passes"
    return f"{fixed}/{total} tokens · {counted} · {(fixed - given) / pictures / passes:.1f} tokens a pass"


def summary(
    trace: Trace, decoder: Decoder, settings: RunSettings, seconds: float, preview: str = ""
) -> list[str]:
    """When it is done: the lines that matter most. `preview` says which pictures it left out."""
    drawn = max(trace.tokens_of)
    passes = f"{trace.passes} passes for {drawn} tokens"
    if trace.batch > 1:
        passes += f" of each of {trace.batch} pictures"
    pace = f"{drawn / trace.passes:.1f} a pass · {seconds:.2f} s"
    note = "" if trace.promise == decoder.promise else f" ({APPROXIMATE_NOTE})"
    return [
        " · ".join(filter(None, [passes, pace, preview])),
        f"promise: {trace.promise}{note}",
        *settings.lines(),
    ]


def facts(
    trace: Trace, decoder: Decoder, settings: RunSettings, seconds: float, preview_seconds: float
) -> dict[str, Any]:
    """The same for programs, JSON values only; it comes with the node's result under "jacobi_ar"."""
    return {
        "passes": trace.passes,
        "passes_of": list(trace.passes_of),
        "autoregressive_passes": trace.autoregressive_passes,
        "tokens": sum(trace.tokens_of),  # decoded, not given
        "seconds": round(seconds, 4),
        "preview_seconds": round(preview_seconds, 4),
        "batch": len(settings.seeds),
        "rows": settings.grid.rows,
        "columns": settings.grid.cols,
        "decoder": decoder.describe(),
        "promise": str(trace.promise),
        "guidance": settings.guidance,
        "temperature": settings.sampling.temperature,
        "top_k": settings.sampling.top_k,
        "top_p": settings.sampling.top_p,
        "automatic": sorted(settings.automatic),
        "seeds": [str(seed) for seed in settings.seeds],  # 64 bits are too many for a JavaScript number
    }
