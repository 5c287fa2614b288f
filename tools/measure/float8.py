"""What weights in float8 change: how far the logits move, and what a forward takes.

python tools/measure/float8.py [--write]

Logits: the built-in model over the tokens of finished pictures, against float32. Time: a randomly initialised
LlamaGen-B on the CPU, forwards of 1 and of 16 inputs, interleaved, against bfloat16.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from common import PROMPTS, ROOT, machine, markdown_table, write_block, write_json
from jacobi_ar.decoding import SamplingSettings, decode, run_to_end, same_picture
from jacobi_ar.model_loaders.float8 import float8_operations
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from real_shapes import llamagen_c2i, write_file
from torch import Tensor

FLOAT8 = float8_operations(torch.nn)
KINDS = {"bfloat16": torch.nn, "float8 weights (bfloat16 arithmetic)": FLOAT8}
GUIDANCE = 1.5


def builtin(dtype: torch.dtype, operations: object = torch.nn) -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=dtype, operations=operations)


def logits_over(model: ImageModel, text: str, tokens: Tensor) -> Tensor:
    """Guided logits of every cell of a finished picture, [cells, V] float32."""
    cells = tokens.numel()
    target = model.target(model.grids[0], GUIDANCE)
    first = target.prefill([model.encode_prompt(text)], cells)
    positions = torch.arange(cells - 1)[None]
    visible = torch.ones(cells - 1, cells - 1, dtype=torch.bool).tril()[None]
    rest = target.forward(tokens.view(1, -1)[:, :-1], positions, positions, visible)
    return torch.cat([first[:, None], rest], 1)[0].float()


def errors(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Kind -> (root mean square of the difference over the logits' spread, cells with the same likeliest
    token)."""
    exact = builtin(torch.float32)
    models = {name: builtin(torch.bfloat16, operations) for name, operations in KINDS.items()}
    squares, equal = {name: [] for name in models}, {name: [] for name in models}
    for seed, text in enumerate(texts):
        target = exact.target(exact.grids[0], GUIDANCE)
        made = decode(target, [exact.encode_prompt(text)], same_picture(31), SamplingSettings(), [seed])
        tokens = run_to_end(made).tokens
        wanted = logits_over(exact, text, tokens)
        for name, model in models.items():
            got = logits_over(model, text, tokens)
            squares[name].append(((got - wanted).pow(2).mean() / wanted.var()).item())
            equal[name].append((got.argmax(1) == wanted.argmax(1)).float().mean().item())
    return {name: (float(np.sqrt(np.mean(squares[name]))), float(np.mean(equal[name]))) for name in models}


def times(folder: Path, rounds: int) -> dict[str, dict[int, float]]:
    """Kind -> inputs of a forward -> median milliseconds, of LlamaGen-B with guidance."""
    file = folder / "b.safetensors"
    write_file(llamagen_c2i(768, 12, 2048), file, "BF16", random=True)
    targets = {}
    for name, operations in KINDS.items():
        model = load_image_model(file, device="cpu", dtype=torch.bfloat16, operations=operations)
        targets[name] = model.target(model.grids[0], 4.0)
        targets[name].prefill([model.encode_prompt("1")], 64)
    taken: dict[str, dict[int, list[float]]] = {name: {1: [], 16: []} for name in targets}
    for _ in range(rounds):
        for name, target in targets.items():
            for inputs, seconds in taken[name].items():
                places = torch.arange(inputs)[None]
                visible = torch.ones(inputs, inputs, dtype=torch.bool).tril()[None]
                started = time.perf_counter()
                target.forward(torch.zeros_like(places), places, places, visible)
                seconds.append(1000 * (time.perf_counter() - started))
    return {name: {n: float(np.median(s)) for n, s in each.items()} for name, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    parser.add_argument("--folder", type=Path, required=True, help="for a file of 0.2 GB")
    parser.add_argument("--pictures", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "float8.json")
    options = parser.parse_args()
    with torch.inference_mode():
        off = errors(list(PROMPTS[: options.pictures]))
        taken = times(options.folder, options.rounds)
    plain = taken["bfloat16"]
    rows = [
        [
            name,
            f"{100 * off[name][0]:.1f} %",
            f"{100 * off[name][1]:.1f} %",
            *(f"{taken[name][n]:.0f} ms ({taken[name][n] / plain[n]:.1f}x)" for n in plain),
        ]
        for name in KINDS
    ]
    head = ["precision", "difference of logits", "same likeliest token", "forward of 1", "forward of 16"]
    table = markdown_table(head, rows)
    caption = (
        f"Against float32, root mean square over the logits' spread, {options.pictures} pictures of the "
        f"built-in model at guidance {GUIDANCE}; times of LlamaGen-B, random, with guidance, medians of "
        f"{options.rounds}. {machine()}."
    )
    print(f"{table}\n\n{caption}")
    write_json(options.json, {"errors": off, "milliseconds": taken})
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "float8", f"{table}\n\n{caption}")


if __name__ == "__main__":
    main()
