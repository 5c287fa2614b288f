"""Run in a Python with ComfyUI: every family's toy built of ComfyUI's own layer classes, which stream
weights.

python layer_classes.py ROOT FOLDER        (with ComfyUI's folder in PYTHONPATH)

Prints JSON: for each toy, the largest difference of its logits from those of torch.nn's layers (as a share of
the largest logit): the classes as they are; casting, weights in the model's type; casting, weights stored in
float16. And which modules hold parameters that ComfyUI would not stream.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from comfy_process import start


def main(root: str, folder: str) -> None:
    start(root)
    import comfy.ops
    import torch
    from jacobi_ar.decoding.grid import TokenGrid
    from jacobi_ar.model_loaders.load import load_image_model
    from jacobi_ar.tests.toy_families import TOYS, toy_prompts

    def logits(path: Path, operations: object, stored: torch.dtype) -> tuple[torch.Tensor, list[str]]:
        model = load_image_model(path, device="cpu", dtype=torch.float32, operations=operations)
        modules = list(model.transformer.to(stored).modules())
        kept = [type(m).__name__ for m in modules if m._parameters and not hasattr(m, "comfy_cast_weights")]
        grid = TokenGrid(4, 4, model.grids[0].row_end)
        target = model.target(grid, 2.0)
        first = target.prefill(toy_prompts(model, 3), grid.length)
        slots = torch.arange(3).expand(3, -1)
        rest = target.forward(torch.zeros_like(slots), slots, slots, torch.arange(3) <= slots[..., None])
        return torch.cat([first[:, None], rest], dim=1), kept

    casting, plain = comfy.ops.manual_cast, comfy.ops.disable_weight_init
    found = {}
    for name, build in (toy for toys in TOYS.values() for toy in toys.items()):
        path = build(Path(folder) / name)
        expected, _ = logits(path, torch.nn, torch.float32)
        report: dict[str, object] = {}
        for key, operations, stored in (
            ("plain", plain, torch.float32),
            ("casting", casting, torch.float32),
            ("stored in float16", casting, torch.float16),
        ):
            got, kept = logits(path, operations, stored)
            report[key] = float((got - expected).abs().max() / expected.abs().max())
            report["not streamed"] = kept
        found[name] = report
    print(json.dumps(found))


main(*sys.argv[1:])
