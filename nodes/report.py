"""What a run did, as lines for people and as facts for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..decoding import Decoder, SamplingSettings, Trace
from ..decoding.grid import TokenGrid


@dataclass(frozen=True)
class RunSettings:
    """The widgets of a run with every "auto" resolved; `automatic` names those that were."""

    grid: TokenGrid
    guidance: float
    sampling: SamplingSettings
    seeds: tuple[int, ...]
    automatic: frozenset[str] = frozenset()

    def lines(self) -> list[str]:
        def shown(name: str, value: object) -> str:
            return f"{name} {value}" + (" (auto)" if name in self.automatic else "")

        top_k = self.sampling.top_k or "off"
        top_p = self.sampling.top_p if self.sampling.top_p < 1 else "off"
        return [
            f"{shown('guidance', number(self.guidance))}, temperature {number(self.sampling.temperature)}, "
            f"{shown('top-k', top_k)}, top-p {top_p}, "
            f"{shown('grid', f'{self.grid.rows} x {self.grid.cols}')}",
            f"seed{'s' if len(self.seeds) > 1 else ''} {', '.join(map(str, self.seeds))}",
        ]


def progress_line(fixed: int, total: int, passes: int, pictures: int) -> str:
    """While it runs, for example: 96/256 tokens · 12 passes · 8.0 tokens a pass (of one picture)."""
    return f"{fixed}/{total} tokens · {passes} passes · {fixed / pictures / passes:.1f} tokens a pass"


def summary(trace: Trace, decoder: Decoder, settings: RunSettings, seconds: float) -> str:
    """When it is done; a few lines for the node."""
    return "\n".join(
        [
            f"{trace.passes} passes for {trace.cells} tokens, {trace.cells / trace.passes:.1f} tokens a "
            f"pass, {seconds:.2f} s"
            + (f", batch of {len(settings.seeds)}" if len(settings.seeds) > 1 else ""),
            decoder.describe(),
            f"promise: {decoder.promise}",
            *settings.lines(),
        ]
    )


def facts(
    trace: Trace, decoder: Decoder, settings: RunSettings, seconds: float, preview_seconds: float
) -> dict[str, Any]:
    """The same for programs, JSON values only; it comes with the node's result under "jacobi_ar"."""
    return {
        "passes": trace.passes,
        "passes_of": list(trace.passes_of),
        "autoregressive_passes": trace.autoregressive_passes,
        "tokens": trace.cells * len(settings.seeds),
        "seconds": round(seconds, 4),
        "preview_seconds": round(preview_seconds, 4),
        "batch": len(settings.seeds),
        "rows": settings.grid.rows,
        "columns": settings.grid.cols,
        "decoder": decoder.describe(),
        "promise": str(decoder.promise),
        "guidance": settings.guidance,
        "temperature": settings.sampling.temperature,
        "top_k": settings.sampling.top_k,
        "top_p": settings.sampling.top_p,
        "automatic": sorted(settings.automatic),
        "seeds": [str(seed) for seed in settings.seeds],  # 64 bits are too many for a JavaScript number
    }


def number(value: float) -> str:
    return f"{value:g}"
