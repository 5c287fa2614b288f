"""Passes of the decoders on the built-in model: mean of many pictures, with prompts and without.

python tools/measure/passes.py [--pictures 50] [--windows 16 31] [--json FILE] [--write]

The laws of a prompt are nearly certain (the model recalls its drawings), those without a prompt are open:
both are measured. Temperature 1, no top-k, float32. `--write` puts the table into docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from common import (
    PROMPTS,
    ROOT,
    builtin_model,
    builtin_tokenizer,
    machine,
    markdown_table,
    write_block,
    write_json,
)
from jacobi_ar.decoding import (
    DRAWS,
    Codebook,
    Decoder,
    SamplingSettings,
    autoregressive,
    block_sjd,
    decode,
    greedy_jacobi,
    gsd,
    image_seeds,
    lantern,
    pjd,
    run_to_end,
    same_picture,
    same_picture_rows,
    same_picture_tree,
    sjd,
    sjd_tree,
    with_prediction,
    with_semantics,
    zipar,
)
from jacobi_ar.model_loaders.image_model import ImageModel

ROW_WINDOW, ROW_THRESHOLD = 7, 4  # PJD's own window; a quarter of the row, as in its paper
TREES = ((3, 2), (4, 2))
README_ROWS = [
    (
        "Same-Picture Jacobi",
        "same picture, uniform",
        "a draft stands where it is step-by-step decoding's own draw",
    ),
    (
        "Greedy Jacobi",
        "greedy Jacobi (temperature 0)",
        "likeliest tokens only: step-by-step decoding at temperature 0",
    ),
    ("SJD", "SJD, fresh", "speculative Jacobi decoding, as published"),
    ("SJD, maximal coupling", "SJD, maximal coupling", "redrafts change no more than their law does"),
    ("SJD, shared noise", "SJD, shared noise", "redrafts meet the same noise at every try"),
    ("SJD with Block Test", "SJD, block test", "the whole window tested at once"),
    (
        "SJD with Tree Drafts (PAC)",
        "SJD-PAC, 3 siblings, depth 2",
        "several guesses for the next tokens, in all combinations; maximal coupling",
    ),
    ("SJD + VP", "SJD-VP, fresh", "redrafts lean to what keeps growing"),
    ("GSD", "GSD", "a draft may stand for tokens near it"),
    ("LANTERN", "LANTERN, 100 neighbours", "a draft may stand for codes that look like it"),
    ("SJD + SV", "SJD-SV", "runs of drafts tested as one"),
    (
        "PJD",
        f"PJD, window {ROW_WINDOW}, threshold {ROW_THRESHOLD}",
        "several rows at once, each with its window",
    ),
    ("ZipAR", f"ZipAR, threshold {ROW_THRESHOLD}", "several rows at once, one token each, untested"),
]
# Measured at every window; the others at the largest one.
CORE = (
    "same picture, uniform",
    *(f"SJD, {draw}" for draw in DRAWS),
    "SJD, block test",
    "SJD-VP, fresh",
    "SJD-SV",
)
CONDITIONS = {"prompts, guidance 1": 1.0, "prompts, guidance 2": 2.0, "no prompt": 1.0}
BATCH = 25


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
    starts = ("uniform", "copy left", "copy above", "neighbour's law")
    chosen = {f"same picture, {start}": same_picture(window, start, fixed_shapes=False) for start in starts}
    chosen["same picture, rows that only draft"] = same_picture_rows(window, ROW_THRESHOLD)
    chosen["greedy Jacobi (temperature 0)"] = greedy_jacobi(window)
    chosen |= {f"SJD, {draw}": sjd(window, "uniform", draw) for draw in DRAWS}
    chosen["SJD, fresh, copy left"] = sjd(window, "copy left", "fresh")
    chosen["SJD, block test"] = block_sjd(window)
    for siblings, depth in TREES:
        tree = f"{siblings} siblings, depth {depth}"
        chosen[f"same picture, {tree}"] = same_picture_tree(window, siblings, depth)
        chosen[f"SJD-PAC, {tree}"] = sjd_tree(window, siblings, depth)
        chosen[f"SJD-PAC, fresh, {tree}"] = sjd_tree(window, siblings, depth, draw="fresh")
    chosen |= {f"SJD-VP, {draw}": with_prediction(sjd(window, "uniform", draw)) for draw in DRAWS}
    chosen["GSD"] = gsd(window)
    chosen["LANTERN, 100 neighbours"] = lantern(window, neighbours=100)
    chosen["SJD-SV"] = with_semantics(sjd(window))
    chosen["SJD-SV, maximal coupling"] = with_semantics(sjd(window, "uniform", "maximal coupling"))
    chosen["GSD-SV"] = with_semantics(gsd(window))
    chosen["LANTERN-SV"] = with_semantics(lantern(window, neighbours=100))
    chosen[f"PJD, window {ROW_WINDOW}, threshold {ROW_THRESHOLD}"] = pjd(ROW_WINDOW, ROW_THRESHOLD)
    chosen[f"ZipAR, threshold {ROW_THRESHOLD}"] = zipar(ROW_THRESHOLD)
    return chosen


def measure(
    model: ImageModel,
    codebook: Codebook,
    name: str,
    decoder: Decoder,
    window: int,
    condition: str,
    pictures: int,
) -> Figure:
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
            trace = run_to_end(
                decode(target, prompts, decoder, SamplingSettings(), seeds, codebook=codebook)
            ).trace
        passes += trace.passes_of
    return Figure(name, str(decoder.promise), condition, window, passes, grid.cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=int, default=50, help="pictures for each figure (default 50)")
    parser.add_argument(
        "--windows", type=int, nargs="+", default=[16, 31], help="drafts a pass (default 16 31)"
    )
    parser.add_argument(
        "--only", metavar="TEXT", help="measure decoders with TEXT in the name, keep the others"
    )
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "passes.json")
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    options = parser.parse_args()

    model, codebook = builtin_model(), Codebook(builtin_tokenizer().codebook)
    figures = [measure(model, codebook, "autoregressive", autoregressive(), 0, "no prompt", 2)]
    earlier = {}
    if options.only is not None:
        made = [Figure(**figure) for figure in json.loads(options.json.read_text(encoding="utf-8"))]
        earlier = {(f.decoder, f.condition, f.window): f for f in made if options.only not in f.decoder}
    for condition in CONDITIONS:
        for window in options.windows:
            for name, decoder in decoders(window).items():
                if window != max(options.windows) and name not in CORE:
                    continue
                figures.append(
                    earlier.get((name, condition, window))
                    or measure(model, codebook, name, decoder, window, condition, options.pictures)
                )
                print(f"{condition:22s} window {window:3d}  {name:32s} {figures[-1].cell()}", flush=True)
    write_json(options.json, [vars(figure) for figure in figures])

    columns = [(condition, window) for condition in CONDITIONS for window in options.windows]
    found = {(f.decoder, f.condition, f.window): f for f in figures}
    rows = [["autoregressive", "same picture", *[f"{figures[0].passes[0]} (1x)"] * len(columns)]]
    for name in decoders(1):
        cells = [found[key].cell() if (key := (name, *column)) in found else "" for column in columns]
        promise = found[name, "no prompt", max(options.windows)].promise
        rows.append([name, promise, *cells])
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
    tokens = str(next(iter(found.values())).tokens)
    rows = [["Autoregressive", "the reference", "one token a pass", tokens, tokens]]
    for title, name, idea in README_ROWS:
        prompted, open_laws = (
            found[name, condition, window] for condition in ("prompts, guidance 2", "no prompt")
        )
        rows.append([title, prompted.promise, idea, prompted.short(), open_laws.short()])
    head = ["decoder", "promise", "how", "passes, with a prompt", "passes, no prompt"]
    return markdown_table(head, rows)


if __name__ == "__main__":
    main()
