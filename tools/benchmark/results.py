"""Figures on disk: one JSON file a measurement, condition -> decoder -> figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..measure.common import write_json
from .specs import decoder_of
from .subject import Condition, Subject
from .timing import Stopwatch

Figures = dict[str, Any]


class Results:
    """Figures of one subject; those of another in the same file are dropped."""

    def __init__(self, path: Path, subject: Subject | None = None) -> None:
        """Without a subject: what is in the file, to be read."""
        self.path = path
        self.content: dict[str, Any] = {"figures": {}}
        if path.exists():
            self.content = json.loads(path.read_text(encoding="utf-8"))
        if subject is not None:
            about = {
                "key": subject.key,
                "model": subject.model.name,
                "dtype": str(subject.model.dtype).removeprefix("torch."),
                "cells": subject.grid.cells,
                "weights_mib": round(subject.model.weight_bytes / 2**20, 1),
                "machine": subject.machine,
            }
            # What else is told about the figures is no sign of another subject.
            if {key: self.about.get(key) for key in about} != about:
                self.content = {"about": about, "figures": {}}

    @property
    def about(self) -> dict[str, Any]:
        return self.content.get("about", {})

    def of(self, spec: str, condition: Condition) -> Figures | None:
        return self.content["figures"].get(condition.key, {}).get(spec)

    def put(self, spec: str, condition: Condition, figures: Figures) -> None:
        self.content["figures"].setdefault(condition.key, {})[spec] = figures
        write_json(self.path, self.content)


def time_figures(stopwatch: Stopwatch, spec: str, condition: Condition) -> Figures | None:
    """What the records of a decoder say; None without records.

    Passes: mean, with the half width of its 95 % interval. Seconds: median. Ratio: median over the pictures
    of step-by-step seconds over the decoder's, for the same picture in the same run; with a bootstrap
    interval.
    """
    pairs = stopwatch.of(spec, condition)
    if not pairs:
        return None
    own, base = [a for a, _ in pairs], [b for _, b in pairs]
    passes = np.array([r.passes for r in own], float)
    seconds = np.array([r.seconds for r in own])
    ratios = np.array([b.seconds for b in base]) / seconds
    rng = np.random.Generator(np.random.Philox(0))
    medians = [np.median(rng.choice(ratios, len(ratios))) for _ in range(400)]
    cells = stopwatch.subject.grid.cells
    figures = {
        "passes": passes.mean(),
        "passes_error": 1.96 * passes.std(ddof=1) / len(passes) ** 0.5 if len(passes) > 1 else 0.0,
        "compression": cells / passes.mean(),
        "tokens_a_pass": float((cells / passes).mean()),
        "accepted": float(np.mean([r.accepted for r in own])),
        "seconds": np.median(seconds),
        "ratio": np.median(ratios),
        "ratio_low": np.quantile(medians, 0.025),
        "ratio_high": np.quantile(medians, 0.975),
        "outside": np.median([1 - r.inside / r.seconds for r in own]),
    }
    return {
        "promise": str(decoder_of(spec).promise),
        "pictures": len(pairs),
        **{key: round(float(value), 5) for key, value in figures.items()},
    }
