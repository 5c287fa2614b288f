"""All families on ComfyUI's own layer classes, whose weights it keeps elsewhere and casts when they are
used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from jacobi_ar.tests.toy_families import TOYS
from jacobi_ar.tools.comfy_server import ROOT


def test_layers_of_comfyui_give_the_same_logits(comfyui: Path, tmp_path: Path) -> None:
    script = Path(__file__).with_name("layer_classes.py")
    run = subprocess.run(
        [sys.executable, str(script), str(ROOT), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(comfyui)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert set(found) == {name for toys in TOYS.values() for name in toys}
    for name, report in found.items():
        assert report["not streamed"] == [], name
        assert report["plain"] < 1e-5 and report["casting"] < 1e-5, name
        assert 0 < report["stored in float16"] < 0.02, (
            name
        )  # the rounding of the weights, which really took place
