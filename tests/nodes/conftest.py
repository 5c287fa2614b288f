"""Makes the host-free files of `nodes` importable without ComfyUI: the package itself imports the host."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

if "jacobi_ar.nodes" not in sys.modules:
    alias = ModuleType("jacobi_ar.nodes")
    alias.__path__ = [str(Path(__file__).resolve().parents[2] / "nodes")]
    sys.modules["jacobi_ar.nodes"] = alias
