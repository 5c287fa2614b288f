"""What a decoding step costs beyond the model: time of the whole step over time of its bare forward, in one
run.

python tools/measure/overhead.py [--json FILE] [--write]

Window 31, batch 1, guidance 2, float32, on the built-in model and on a randomly initialised LlamaGen-B. The
decode's own forwards are timed from inside, so numerator and denominator are the same forwards. On a device
that computes in the background this would need a wait for it around each forward; here: CPU.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from common import ROOT, builtin_model, machine, markdown_table, write_block, write_json
from jacobi_ar.decoding import Decoder, SamplingSettings, autoregressive, decode, same_picture, sjd
from jacobi_ar.model_loaders.image_model import ImageModel
from random_models import random_llamagen_b
from torch import Tensor

DECODERS = {
    "same picture": same_picture(31),
    "SJD, fresh": sjd(31, "uniform", "fresh"),
    "SJD, maximal coupling": sjd(31, "uniform", "maximal coupling"),
    "SJD, shared noise": sjd(31, "uniform", "shared noise"),
    "autoregressive": autoregressive(),
}


def step_over_forward(model: ImageModel, decoder: Decoder, text: str, steps: int) -> tuple[float, float]:
    """(step / bare forward, forward in ms): medians over the steps of a decode, the first few left out."""
    target = model.target(model.grids[0], 2.0)
    forward, inside = target.forward, []

    def timed(inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor) -> Tensor:
        start = time.perf_counter()
        logits = forward(inputs, positions, slots, visible)
        inside.append(time.perf_counter() - start)
        return logits

    target.forward = timed  # type: ignore[method-assign]
    whole, last = [], time.perf_counter()
    with torch.inference_mode():
        for report in decode(target, [model.encode_prompt(text)], decoder, SamplingSettings(), [1]):
            now = time.perf_counter()
            whole.append(now - last)
            last = now
            if report.passes > steps:
                break
    ratios = np.array(whole[1:]) / np.array(inside)
    return float(np.median(ratios[2:])), 1000 * float(np.median(inside[2:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "overhead.json")
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    parser.add_argument(
        "--rounds", type=int, default=3, help="interleaved repetitions, their median is shown"
    )
    options = parser.parse_args()

    models = {
        "built-in": (builtin_model(), "red heart", 60),
        "LlamaGen-B, random": (random_llamagen_b(), "1", 12),
    }
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        for model_name, (model, text, steps) in models.items():
            for name, decoder in DECODERS.items():
                figures.setdefault((model_name, name), []).append(
                    step_over_forward(model, decoder, text, steps)
                )
    rows, content = [], []
    for (model_name, name), rounds in figures.items():
        ratio, ms = np.median(np.array(rounds), axis=0).tolist()
        rows.append([model_name, name, f"{ratio:.3f}", f"{ms:.1f}"])
        content.append({"model": model_name, "decoder": name, "ratio": ratio, "forward_ms": ms})
    table = markdown_table(
        ["model", "decoder (window 31, batch 1, guidance 2)", "step / bare forward", "forward, ms"], rows
    )
    caption = f"Medians of {options.rounds} interleaved rounds, float32. {machine()}."
    print(f"{table}\n\n{caption}")
    write_json(options.json, content)
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "overhead", f"{table}\n\n{caption}")


if __name__ == "__main__":
    main()
