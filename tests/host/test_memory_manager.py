"""ComfyUI's memory manager holds a model in part, away or whole, and the logits stay; its extra folders are
looked through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.tools.comfy_server import ROOT

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def found(comfyui: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("memory")
    return report_of("memory_manager.py", comfyui, ROOT, folder) | {"folder": str(folder)}


def report_of(script: str, comfyui: Path, *arguments: Path) -> dict[str, Any]:
    """What a script beside this file prints, run with ComfyUI in reach."""
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(comfyui)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["plain", "float8"])
def test_a_model_that_is_held_in_part_gives_the_same_logits(found: dict[str, Any], kind: str) -> None:
    report = found[kind]
    assert report["same"] == [True, True, True]
    assert report["streamed"] > 10 and report["streamed when whole"] == 0


def test_float8_is_smaller_for_the_manager_too(found: dict[str, Any]) -> None:
    # Embeddings and head, 31 % of this small model, and the denoiser stay as they are.
    assert found["float8"]["bytes"] < 0.75 * found["plain"]["bytes"]


def test_extra_model_paths_are_looked_through(found: dict[str, Any]) -> None:
    place = Path(found["folder"], "elsewhere", "models")
    assert found["shown"]["a.safetensors"] == str(place / "mine" / "a.safetensors")
    assert found["shown"]["Janus-Pro/Janus-Pro-1B"] == str(place / "janus" / "Janus-Pro-1B")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_batch_that_does_not_fit_is_made_in_parts_and_an_error_says_what_helps(comfyui: Path) -> None:
    report = report_of("short_memory.py", comfyui, ROOT)
    assert report["undivided"] == [8] and len(report["parts"]) > 1 and sum(report["parts"]) == 8
    assert report["same"]
    message = report["message"]
    assert message.startswith("Jacobi AR – Generate Image Tokens: out of memory")
    assert "1) " in message and "3) " in message and message.count("saves about") == 3
