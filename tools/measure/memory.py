"""Peak memory of loading and of generating, for models of released shapes.

python tools/measure/memory.py [--write] [--folder FOLDER]

Measured: random weights, each row in a process of its own; its peak of resident memory (pages of files that
are mapped included) less what the process had before. Calculated: files with holes in the place of weights,
opened by the same loaders on the meta device, and the estimate that the Generate node shows. Needs Linux,
about 8 GiB of memory and 10 GiB of disk in FOLDER (default: a temporary one).
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from common import ROOT, machine, markdown_table, write_block, write_json

nodes = ModuleType("jacobi_ar.nodes")  # the files of it that need no ComfyUI
nodes.__path__ = [str(ROOT / "nodes")]
sys.modules.setdefault("jacobi_ar.nodes", nodes)

from jacobi_ar.decoding import SamplingSettings, decode, sjd  # noqa: E402
from jacobi_ar.model_loaders.convert import plan_conversion, write  # noqa: E402
from jacobi_ar.model_loaders.float8 import float8_operations  # noqa: E402
from jacobi_ar.model_loaders.image_model import ImageModel  # noqa: E402
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model  # noqa: E402
from jacobi_ar.nodes.run_memory import Estimate, estimate  # noqa: E402
from jacobi_ar.nodes.run_settings import RunSettings  # noqa: E402
from real_shapes import RELEASED, write_shards, write_torch  # noqa: E402

FLOAT8 = float8_operations(torch.nn)
GIB = 2**30
WINDOW = 15
STEPS = 2  # every tensor of a step has been there after the first; the cache is filled beforehand


@dataclass(frozen=True)
class Case:
    """One measured row."""

    model: str
    form: str  # the file; its last word says the kind
    precision: str  # bfloat16, float8

    @property
    def title(self) -> str:
        return f"{self.model}, {self.form} as {self.precision}"


CASES = [
    Case("LlamaGen-XL c2i", "float32 .pt", "bfloat16"),
    Case("LlamaGen-XL c2i", "float32 .pt", "float8"),
    Case("LlamaGen-XL c2i", "converted float8 .safetensors", "float8"),
    Case("Janus-Pro-1B", "bfloat16 .bin", "bfloat16"),
    Case("Janus-Pro-1B", "bfloat16, 4 .safetensors", "bfloat16"),
    Case("Janus-Pro-1B", "bfloat16, 4 .safetensors", "float8"),
]


def load(path: Path, precision: str, device: str = "cpu") -> ImageModel:
    operations = FLOAT8 if precision == "float8" else torch.nn
    return load_image_model(path, device=device, dtype=torch.bfloat16, operations=operations)


def run_of(model: ImageModel) -> tuple[list[Any], RunSettings]:
    """One picture at the model's own settings."""
    prompt = model.encode_prompt("1" if model.family == "LlamaGen c2i" else "red")
    usual = model.defaults
    sampling = SamplingSettings(usual.temperature, usual.top_k, usual.top_p)
    return [prompt], RunSettings(model.grids[0], usual.guidance, sampling, (1,))


def peak_reset() -> int:
    """Resident bytes now, from which the next peak counts."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def measure(path: Path, precision: str) -> dict[str, int]:
    """In the process that this is run in."""
    # What loading and decoding take once, whatever the model: libraries that are imported late, their
    # buffers.
    some_steps(load(BUILTIN_MODEL, precision))
    before = peak_reset()
    model = load(path, precision)
    loading = status("VmHWM") - before
    prompts, settings = run_of(model)
    expected = estimate(model, prompts, sjd(WINDOW), settings)
    peak_reset()
    some_steps(model)
    return {
        "loading": loading,
        "generating": status("VmHWM") - before,
        "weights": expected.weights,
        "cache": expected.cache,
        "run": expected.run,
    }


def some_steps(model: ImageModel) -> None:
    """The beginning of a run, with the whole cache in memory."""
    prompts, settings = run_of(model)
    target = model.target(settings.grid, settings.guidance)
    with torch.inference_mode():
        for report in decode(target, prompts, sjd(WINDOW), settings.sampling, [1]):
            if report.passes == 1:
                target._cache._storage.add_(0)  # a page counts once it is touched
            if report.passes > STEPS:
                break


def in_process(path: Path, precision: str) -> dict[str, int]:
    command = [sys.executable, __file__, "--measure", str(path), precision]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def prepare(case: Case, folder: Path) -> Path:
    """The files of a row, made once."""
    shapes, texts, kind, _ = RELEASED[case.model]
    place = folder / f"{case.model} {case.form}".replace(" ", "_").replace(",", "")
    path = place / "model.safetensors" if case.form.startswith("converted") else place
    if place.exists():
        return path
    place.mkdir(parents=True)
    texts(place)
    if case.form.startswith("converted"):
        plan = plan_conversion(prepare(CASES[0], folder), None, float8=True)
        for _ in write(plan, path):
            pass
    elif case.form.endswith(".safetensors"):
        write_shards(shapes, place, kind, 4, random=True)
    else:
        write_torch(shapes, place / f"pytorch_model{case.form.split()[-1]}", kind)
    return path


def largest_file(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.suffix != ".json"]
    return max(file.stat().st_size for file in files)


def measured(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    rows, content = [], []
    for case in CASES:
        path = prepare(case, folder)
        figures = in_process(path, case.precision) | {"largest_file": largest_file(path)}
        held = figures["weights"] + figures["cache"]
        rows.append(
            [
                case.title,
                gib(figures["weights"]),
                gib(figures["largest_file"]),
                gib(figures["loading"]),
                gib(figures["cache"]),
                gib(figures["generating"]),
                f"{100 * (figures['generating'] / held - 1):.1f} %",
                gib(figures["weights"] + figures["run"]),
            ]
        )
        content.append({"case": case.title} | figures)
        print(rows[-1], flush=True)
    head = [
        "model, file and precision",
        "weights",
        "largest file",
        "peak of loading",
        "cache",
        "peak of generating",
        "over weights and cache",
        "estimate shown",
    ]
    return markdown_table(head, rows), content


def calculated(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    rows, content = [], []
    for name in ("Janus-Pro-7B", "Lumina-mGPT 7B", "Emu3-Gen 8B"):
        shapes, texts, kind, parts = RELEASED[name]
        place = folder / f"hollow {name}"
        place.mkdir(parents=True, exist_ok=True)
        texts(place)
        write_shards(shapes, place, kind, parts, random=False)
        for precision in ("bfloat16", "float8"):
            model = load(place, precision, "meta")
            prompts, settings = run_of(model)
            needed: Estimate = estimate(model, prompts, sjd(WINDOW), settings)
            largest = max(map(weight_bytes, model.transformer.parameters()))
            grid = f"{settings.grid.rows} x {settings.grid.cols}"
            figures = {"weights": needed.weights, "cache": needed.cache, "run": needed.run}
            rows.append(
                [
                    f"{name}, {parts} files as {precision}",
                    gib(needed.weights),
                    gib(needed.weights + 2 * largest),
                    grid,
                    gib(needed.cache),
                    gib(needed.weights + needed.run),
                ]
            )
            content.append({"case": rows[-1][0], "grid": grid} | figures)
    head = [
        "model, file and precision (calculated)",
        "weights",
        "peak of loading, at most",
        "grid",
        "cache",
        "peak of generating",
    ]
    return markdown_table(head, rows), content


def weight_bytes(weight: torch.Tensor) -> int:
    """Of a tensor while it is read, in float32 at most."""
    return weight.numel() * 4


def gib(number: int) -> str:
    return f"{number / GIB:.2f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measured.md")
    parser.add_argument("--folder", type=Path, help="where the files are made and stay")
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "memory.json")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.measure[0]), options.measure[1])))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        ours, measured_content = measured(folder)
        theirs, calculated_content = calculated(folder)
    caption = (
        f"One picture at the model's own guidance, SJD with a window of {WINDOW}. GiB are 2^30 bytes. Peaks "
        "of a process, less what it had after a small model had been loaded and run. Generating: the prompt "
        f"and {STEPS} steps, with the whole cache in memory. {machine()}."
    )
    text = f"{ours}\n\n{theirs}\n\n{caption}"
    print(text)
    write_json(options.json, {"measured": measured_content, "calculated": calculated_content})
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "memory", text)


if __name__ == "__main__":
    main()
