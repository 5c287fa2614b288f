"""Run in a Python with ComfyUI: what its memory manager and its folders make of this package.

python memory_manager.py ROOT FOLDER        (with ComfyUI's folder in PYTHONPATH)

Prints JSON. Of the built-in model, plain and with float8 weights: how many layers ComfyUI streams when it may
hold half of the weights, and whether the logits stay the same bits in every state. Of extra_model_paths.yaml:
the names that the loader shows.
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
    import utils.extra_config
    from comfy.model_patcher import ModelPatcher
    from jacobi_ar.model_loaders.float8 import float8_operations
    from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
    from jacobi_ar.nodes import host, model_choices

    cpu = torch.device("cpu")
    plain = comfy.ops.disable_weight_init

    def states(operations: object) -> dict[str, object]:
        model = load_image_model(BUILTIN_MODEL, device="cpu", dtype=torch.bfloat16, operations=operations)
        prompt = model.encode_prompt("red heart")

        def logits() -> torch.Tensor:
            return model.target(model.grids[0], 2.0).prefill([prompt], 256)

        def streamed() -> int:
            return sum(hasattr(module, "prev_comfy_cast_weights") for module in model.transformer.modules())

        before = logits()
        patcher = ModelPatcher(model.transformer, load_device=cpu, offload_device=cpu)
        patcher.load(cpu, lowvram_model_memory=patcher.model_size() // 2)
        partly, layers = logits(), streamed()
        patcher.detach()
        away = logits()
        patcher.load(cpu, full_load=True)
        whole, left = logits(), streamed()
        same = [bool(torch.equal(before, other)) for other in (partly, away, whole)]
        return {"same": same, "streamed": layers, "streamed when whole": left, "bytes": patcher.model_size()}

    place = Path(folder, "elsewhere", "models")
    for name in (
        "mine/a.safetensors",
        "janus/Janus-Pro-1B/config.json",
        "janus/Janus-Pro-1B/pytorch_model.bin",
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("{}")
    paths = Path(folder, "extra_model_paths.yaml")
    paths.write_text(f"other:\n  base_path: {place}\n  ar_image: mine\n  Janus-Pro: janus\n")
    utils.extra_config.load_extra_path_config(str(paths))
    host.register_model_folder()
    choices = model_choices.models()
    shown = {name: str(path) for name, path in choices.files.items()}
    found = {"plain": states(plain), "float8": states(float8_operations(plain)), "shown": shown}
    print(json.dumps(found))


main(*sys.argv[1:])
