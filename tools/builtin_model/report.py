"""The `evaluate` command: all figures of the model card, and a contact sheet to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ..benchmark.likelihood import peakedness
from ..benchmark.subject import Condition
from . import evaluate as e
from .drawings import Drawings
from .selection import SECOND
from .tokenise import Lessons

GUIDANCE = 1.5
SHEET, COLUMNS, SIDE, LABEL = 100, 10, 96, 16
T = TypeVar("T")


def report(
    folder: Path,
    weights: e.Weights,
    drawings: Drawings,
    lessons: Lessons,
    seeds: int,
    most_names: int,
    device: str,
) -> None:
    """Measure and print; figures into evaluation.json, pictures into sheet.png. Goes on where it was."""
    folder.mkdir(parents=True, exist_ok=True)
    references = e.References(drawings, lessons)
    names = spread(lessons.names, most_names)
    figures: dict[str, object] = {
        "weights": e.fingerprints(weights),
        "names": len(lessons.names),
        "names asked": len(names),
        "drawings": len(lessons.about),
        "seeds": seeds,
        "guidance": GUIDANCE,
        "megabytes": sum(path.stat().st_size for path in (weights.transformer, weights.tokenizer)) / 1e6,
        "recall, tokens known": e.ceiling(weights, references, device),
    }
    held = [number for number, one in enumerate(drawings.about) if one.held_out]
    for style in (None, *dict.fromkeys(one.style for one in drawings.about)):
        chosen = spread([n for n in held if style in (None, drawings.about[n].style)], 400)
        if chosen:
            figures[f"held-out dB, {style or 'all'}"] = float(
                np.mean(e.closeness(weights, drawings, chosen, device))
            )
    _say(figures)
    plain = [(name, name, None) for name in names]
    figures["recall"], failed = e.recall(folder, weights, references, plain, seeds, GUIDANCE, device)
    _say({"recall": figures["recall"]})
    several = {one.name for one in lessons.about if one.style in SECOND}
    styled = [
        (f"{one.style} {one.name}", one.name, one.style) for one in lessons.about if one.name in several
    ]
    if styled:
        styled = spread(styled, most_names)
        figures["recall of a style"], _ = e.recall(folder, weights, references, styled, 1, GUIDANCE, device)
    subject = e.subject_of(weights, names, device)
    prompted, bare = Condition(True, GUIDANCE), Condition(False, 1.0)
    some = min(len(names), 256)
    tokens = e.sample(folder, subject, prompted, len(names) * seeds)
    figures["with prompts"] = peakedness(subject, prompted, tokens[:some])
    figures["without a prompt"] = peakedness(subject, bare, e.sample(folder, subject, bare, 64))
    figures["failed"] = failed
    e.write_json(folder / "evaluation.json", figures)
    shown = spread(range(len(names)), SHEET)
    sheet(folder / "sheet.png", e.decoded(subject, tokens[shown]), [names[n] for n in shown])
    _say({key: value for key, value in figures.items() if key != "failed"})


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most `most` of them, evenly."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]


def sheet(path: Path, pictures: torch.Tensor, names: Sequence[str]) -> None:
    """Pictures [N, side, side, 3] in 0..1 with their names below."""
    rows = -(-len(names) // COLUMNS)
    page = Image.new("RGB", (COLUMNS * (SIDE + 4), rows * (SIDE + LABEL + 4)), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=10)
    for number, (picture, name) in enumerate(zip(pictures, names, strict=True)):
        left, top = number % COLUMNS * (SIDE + 4), number // COLUMNS * (SIDE + LABEL + 4)
        image = Image.fromarray((picture * 255).round().byte().numpy())
        page.paste(image.resize((SIDE, SIDE), Image.Resampling.LANCZOS), (left, top))
        draw.text((left + 2, top + SIDE), name[:18], fill="black", font=font)
    page.save(path)


def _say(figures: dict[str, object]) -> None:
    for name, value in figures.items():
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"{name}: {shown}", flush=True)
