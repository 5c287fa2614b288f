"""The figures of a trace: as a table of all pictures, and as what the report of one picture shows."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from ..decoding import Trace
from .comparison import NONE, cell_text, markdown_table
from .drawing.report_sheet import Report

HEAD = (
    "picture",
    "seed",
    "tokens decoded",
    "passes",
    "tokens a pass",
    "most in a pass",
    "drafts kept a pass",
    "bits of entropy, mean",
)


def table(trace: Trace) -> str:
    """In Markdown: the decoder, then a row a picture."""
    rows = []
    for index in range(trace.batch):
        passes, tokens = trace.passes_of[index], trace.tokens_of[index]
        entropy = mean_entropy(trace, index)
        rows.append(
            [
                str(index + 1),
                str(trace.seeds[index]),
                str(tokens),
                str(passes),
                f"{tokens / passes:.2f}",
                str(max(fixed_in_passes(trace, index))),
                f"{drafts_kept(trace, index):.2f}",
                NONE if entropy is None else f"{entropy:.2f}",
            ]
        )
    heading = f"{cell_text(trace.decoder)} (promise: {trace.promise}), {trace.passes} passes in all"
    return f"{heading}\n\n{markdown_table(HEAD, rows)}"


def fixed_in_passes(trace: Trace, index: int) -> list[int]:
    """Tokens of this picture that each pass fixed, up to its last one."""
    counts = np.bincount(trace.step_of[index].ravel(), minlength=2)
    return counts[1:].tolist()


def drafts_kept(trace: Trace, index: int) -> float:
    """Accepted drafts a pass, while the picture was decoded."""
    accepted = [kept[index] for kept in trace.accepted if kept[index] >= 0]
    return sum(accepted) / max(len(accepted), 1)


def entropy_of(trace: Trace, index: int) -> np.ndarray | None:
    """[rows, cols] bits, NaN where a token was given; None where the trace holds none."""
    if trace.entropy is None:
        return None
    return np.where(trace.step_of[index] > 0, trace.entropy[index], np.nan)


def mean_entropy(trace: Trace, index: int) -> float | None:
    entropy = entropy_of(trace, index)
    if entropy is None or np.isnan(entropy).all():
        return None
    return float(np.nanmean(entropy))


def report_of(trace: Trace, index: int, prompt: str | None, picture: Image.Image | None) -> Report:
    """prompt: None where it is not known. The scale of entropy is the same for all pictures of the run."""
    passes, tokens = trace.passes_of[index], trace.tokens_of[index]
    entropy, mean = entropy_of(trace, index), mean_entropy(trace, index)
    most = 0.0 if trace.entropy is None else float(np.nanmax([0.0, *np.ravel(trace.entropy)]))
    ratio = trace.autoregressive_passes_of[index] / passes
    figures = [
        (str(passes), "passes"),
        (f"{tokens / passes:.1f}", "tokens a pass"),
        (f"{ratio:.1f}x", "fewer passes than AR"),
        (NONE if mean is None else f"{mean:.2f}", "bits of entropy, mean"),
    ]
    rows, cols = trace.step_of[index].shape
    named = [] if prompt is None else [prompt.strip() or "(no prompt)"]
    facts = f"promise: {trace.promise} · grid {rows} x {cols} · seed {trace.seeds[index]}"
    if trace.batch > 1:
        facts += f" · picture {index + 1} of {trace.batch}"
    return Report(
        title=" · ".join([*named, trace.decoder.partition(":")[0]]),
        lines=(trace.decoder, facts),
        figures=tuple(figures),
        fixed=fixed_in_passes(trace, index),
        pass_of=np.where(trace.step_of[index] > 0, trace.step_of[index].astype(float), np.nan),
        entropy=entropy,
        most_entropy=round_up(most),
        picture=picture,
    )


def round_up(value: float) -> float:
    """To a tenth: the top of a scale."""
    return max(math.ceil(value * 10) / 10, 0.1)
