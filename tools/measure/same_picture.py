"""Is it the same picture? Every (window, batch, dtype) against step-by-step decoding, token by token.

python tools/measure/same_picture.py [--pairs 100] [--dtypes float64 float32 bfloat16] [--json FILE] [--write]

Three comparisons over the same (prompt, seed) pairs, a third of them each with a prompt at guidance 2, with a
prompt at guidance 1 and without a prompt:
* float64, against one token a pass: equal, always;
* any dtype, against one token a pass in forwards of the decoder's shape: equal, bit for bit;
* float32 and bfloat16, against one token a pass: equal up to rounding. Each first difference is looked at in
  float64: how far apart are the two candidates there, and how far has rounding moved them against each other.
Long; finished parts are kept in the JSON file and not made again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from common import PROMPTS, ROOT, builtin_model, machine, markdown_table, write_block, write_json
from divergence import first_difference, rounding_at
from jacobi_ar.decoding import (
    Decoder,
    SamplingSettings,
    autoregressive,
    decode,
    run_to_end,
    same_picture,
)
from jacobi_ar.model_loaders.image_model import ImageModel

WINDOWS = (2, 8, 16, 31, 63)
BATCHES = (1, 4)
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
STEP_BY_STEP, PADDED = "one token a pass", "one token a pass, same shapes"


def pairs(count: int) -> list[tuple[str, int, float]]:
    """(prompt, seed, guidance); images of a batch share their guidance."""
    thirds = [(2.0, True), (1.0, True), (1.0, False)]
    chosen = []
    for i in range(count):
        guidance, prompted = thirds[i * 3 // count]
        chosen.append((PROMPTS[i % len(PROMPTS)] if prompted else "", 1000 + i, guidance))
    return chosen


def pictures(
    model: ImageModel, decoder: Decoder, chosen: list[tuple[str, int, float]], batch: int
) -> list[list[int]]:
    """Tokens of each pair's picture, made in batches; a batch never mixes guidances."""
    made = []
    for group in batches(chosen, batch):
        prompts = [model.encode_prompt(text) for text, _, _ in group]
        seeds = [seed for _, seed, _ in group]
        with torch.inference_mode():
            target = model.target(model.grids[0], group[0][2])
            result = run_to_end(decode(target, prompts, decoder, SamplingSettings(), seeds))
        made += result.tokens.flatten(1).tolist()
    return made


def batches(chosen: list[tuple[str, int, float]], batch: int) -> Iterator[list[tuple[str, int, float]]]:
    for guidance_first in (True, False):
        part = [pair for pair in chosen if (pair[2] != 1.0) == guidance_first]
        yield from (part[i : i + batch] for i in range(0, len(part), batch))


class Ledger:
    """Finished parts, kept on disk."""

    def __init__(self, path: Path, pair_count: int, complete_only: bool) -> None:
        self.path, self.complete_only = path, complete_only
        self.roundings: dict[str, dict[str, float]] = {}  # of first differences, by where they lie
        self.parts: dict[str, Any] = {"pairs": pair_count}
        if path.exists() and json.loads(path.read_text())["pairs"] == pair_count:
            self.parts = json.loads(path.read_text())

    def get(self, key: str, make: Any) -> Any:
        if key not in self.parts:
            if self.complete_only:
                raise KeyError(key)
            self.parts[key] = make()
            write_json(self.path, self.parts)
            print(f"{key}: done", flush=True)
        return self.parts[key]


def compare(
    models: dict[str, ImageModel], dtype: str, window: int, batch: int, ledger: Ledger
) -> dict[str, Any]:
    """One row of the table."""
    model, chosen = models[dtype], pairs(ledger.parts["pairs"])
    exact = dtype == "float64"  # no rounding to speak of: nothing to pad for
    width = -(-(window + 1) // 32) * 32
    # The reference in the decoder's shapes depends on the padded width alone.
    padded = f"{dtype} AR width {width} batch {batch}"
    decoded = ledger.get(
        f"{dtype} same picture window {window} batch {batch}",
        lambda: pictures(model, same_picture(window, "uniform", fixed_shapes=not exact), chosen, batch),
    )
    single = ledger.get(f"{dtype} AR", lambda: pictures(model, autoregressive(), chosen, 1))
    in_shape = single
    if not exact:
        in_shape = ledger.get(padded, lambda: pictures(model, autoregressive(width - 1), chosen, batch))
    ordered = [pair for group in batches(chosen, batch) for pair in group]
    differences = []
    for pair, ours, reference in zip(ordered, decoded, single, strict=True):
        cell = first_difference(ours, reference)
        if cell is not None:
            # Windows and batches mostly part at the same place: looked at once.
            key = f"{dtype} {pair} {cell} {ours[cell]}"
            if key not in ledger.roundings:
                exact_model = models["float64"]
                ledger.roundings[key] = rounding_at(exact_model, model, pair, reference, ours, cell)
            differences.append(ledger.roundings[key])
    return {
        "dtype": dtype,
        "window": window,
        "batch": batch,
        "pairs": len(ordered),
        "equal_in_shape": sum(a == b for a, b in zip(decoded, in_shape, strict=True)),
        "equal_step_by_step": len(ordered) - len(differences),
        "ties": sum(d["gap"] <= d["moved"] for d in differences),
        "widest_gap": max((d["gap"] for d in differences), default=0.0),
        "differences": differences,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=102)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--json", type=Path, default=ROOT / ".dev" / "same_picture.json")
    parser.add_argument(
        "--table-only", action="store_true", help="the table of what is measured; measure nothing"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    options = parser.parse_args()

    models = {name: builtin_model(dtype) for name, dtype in DTYPES.items()}
    ledger = Ledger(options.json, options.pairs, options.table_only)
    rows = []
    for dtype, batch, window in product(options.dtypes, BATCHES, WINDOWS):
        try:
            rows.append(compare(models, dtype, window, batch, ledger))
        except KeyError as missing:
            print(f"not measured, left out: {missing}")
    write_json(ROOT / "docs" / "measured" / "same_picture.json", rows)
    cells = [
        [
            row["dtype"],
            str(row["batch"]),
            str(row["window"]),
            f"{row['equal_in_shape']} of {row['pairs']}" if row["dtype"] != "float64" else "–",
            f"{row['equal_step_by_step']} of {row['pairs']}",
            f"{row['ties']} of {len(row['differences'])}" if row["differences"] else "–",
            f"{row['widest_gap']:.1e}" if row["differences"] else "–",
        ]
        for row in rows
    ]
    head = [
        "dtype",
        "batch",
        "window",
        f"equal to {PADDED}",
        f"equal to {STEP_BY_STEP}",
        "first differences within rounding",
        "widest gap",
    ]
    table = markdown_table(head, cells)
    caption = (
        "A first difference is within rounding when the two candidates' scores lie closer together in "
        f"float64 (the gap) than the dtype's rounding has moved them against each other. {machine()}."
    )
    print(f"\n{table}\n\n{caption}")
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "same picture", f"{table}\n\n{caption}")


if __name__ == "__main__":
    main()
