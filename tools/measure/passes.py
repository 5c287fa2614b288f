"""Passes of the decoders on the built-in model: mean of many pictures, with prompts and without.

python tools/measure/passes.py [--pictures 50] [--windows 16 32] [--json FILE] [--write]

The laws of a prompt are nearly certain (the model recalls its drawings), those without a prompt are open:
both are measured. Temperature 1, no top-k, float32. `--write` puts the table into docs/measured.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from common import PROMPTS, ROOT, builtin_model, machine, markdown_table, write_block, write_json
from jacobi_ar.decoding import (
    DRAWS,
    Decoder,
    SamplingSettings,
    autoregressive,
    decode,
    greedy_jacobi,
    image_seeds,
    run_to_end,
    same_picture,
    sjd,
)
from jacobi_ar.model_loaders.image_model import ImageModel

README_ROWS = [
    (
        "Same-Picture Jacobi",
        "same picture, uniform",
        "drafts stand where they are what step-by-step decoding draws",
    ),
    ("SJD", "SJD, fresh", "speculative Jacobi decoding, as published"),
    ("SJD, maximal coupling", "SJD, maximal coupling", "redrafts change no more than their law does"),
    ("SJD, shared noise", "SJD, shared noise", "redrafts use the same noise at every try"),
    (
        "Greedy Jacobi",
        "greedy Jacobi (temperature 0)",
        "the likeliest tokens only; same picture as temperature 0",
    ),
]
CONDITIONS = {"prompts, guidance 1": 1.0, "prompts, guidance 2": 2.0, "no prompt": 1.0}
BATCH = 10


@dataclass
class Figure:
    """Passes of single pictures under one condition."""

    decoder: str
    promise: str
    condition: str
    window: int
    passes: list[int]
    tokens: int

    def short(self) -> str:
        mean = float(np.mean(self.passes))
        return f"{mean:.0f} ({self.tokens / mean:.1f}x)"

    def cell(self) -> str:
        mean = float(np.mean(self.passes))
        error = (
            1.96 * float(np.std(self.passes, ddof=1)) / len(self.passes) ** 0.5
            if len(self.passes) > 1
            else 0.0
        )
        return f"{mean:.1f} ± {error:.1f} ({self.tokens / mean:.1f}x)"


def decoders(window: int) -> dict[str, Decoder]:
    """The decoders of the table. Greedy Jacobi belongs to temperature 0 and stands for itself."""
    chosen = {"greedy Jacobi (temperature 0)": greedy_jacobi(window)}
    chosen |= {f"SJD, {draw}": sjd(window, "uniform", draw) for draw in DRAWS}
    chosen["SJD, fresh, copy left"] = sjd(window, "copy left", "fresh")
    starts = ("uniform", "copy left", "copy above", "neighbour's law")
    chosen |= {f"same picture, {start}": same_picture(window, start, fixed_shapes=False) for start in starts}
    return chosen


def measure(model: ImageModel, name: str, decoder: Decoder, condition: str, pictures: int) -> Figure:
    """Decode `pictures` pictures, seeds 0, 1, …; a picture's passes do not depend on its batch."""
    grid, passes = model.grids[0], []
    for first in range(0, pictures, BATCH):
        count = min(BATCH, pictures - first)
        texts = [
            "" if condition == "no prompt" else PROMPTS[(first + i) % len(PROMPTS)] for i in range(count)
        ]
        prompts = [model.encode_prompt(text) for text in texts]
        target = model.target(grid, CONDITIONS[condition])
        with torch.inference_mode():
            seeds = image_seeds(first, count)
            trace = run_to_end(decode(target, prompts, decoder, SamplingSettings(), seeds)).trace
        passes += trace.passes_of
    return Figure(name, str(decoder.promise), condition, decoder.schedule.window, passes, grid.cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=int, default=50, help="pictures for each figure (default 50)")
    parser.add_argument(
        "--windows", type=int, nargs="+", default=[16, 32], help="drafts a pass (default 16 32)"
    )
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "passes.json")
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    options = parser.parse_args()

    model = builtin_model()
    figures = [measure(model, "autoregressive", autoregressive(), "no prompt", 2)]
    for condition in CONDITIONS:
        for window in options.windows:
            for name, decoder in decoders(window).items():
                figures.append(measure(model, name, decoder, condition, options.pictures))
                print(f"{condition:22s} window {window:3d}  {name:32s} {figures[-1].cell()}", flush=True)
    write_json(options.json, [vars(figure) for figure in figures])

    columns = [(condition, window) for condition in CONDITIONS for window in options.windows]
    found = {(f.decoder, f.condition, f.window): f for f in figures}
    rows = [["autoregressive", "same picture", *[f"{figures[0].passes[0]} (1x)"] * len(columns)]]
    for name in decoders(1):
        cells = [found[name, condition, window] for condition, window in columns]
        rows.append([name, cells[0].promise, *[figure.cell() for figure in cells]])
    table = markdown_table(["decoder", "promise", *[f"{c}, window {w}" for c, w in columns]], rows)
    caption = (
        f"Passes for {figures[0].tokens} tokens, mean of {options.pictures} pictures ± 95 % confidence "
        f"(step compression). Window counts drafts. {machine()}."
    )
    print(f"\n{table}\n\n{caption}")
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "passes", f"{table}\n\n{caption}")
        write_block(ROOT / "README.md", "decoders", readme_table(found, max(options.windows)))


def readme_table(found: dict[tuple[str, str, int], Figure], window: int) -> str:
    """The decoders in one line each, with and without a prompt."""
    rows = [["Autoregressive", "the reference", "one token a pass", "256", "256"]]
    for title, name, idea in README_ROWS:
        prompted, open_laws = (
            found[name, condition, window] for condition in ("prompts, guidance 2", "no prompt")
        )
        rows.append([title, prompted.promise, idea, prompted.short(), open_laws.short()])
    head = ["decoder", "promise", "how", "passes, with a prompt", "passes, no prompt"]
    return markdown_table(head, rows)


if __name__ == "__main__":
    main()
