"""For scripts that run in a Python with ComfyUI's folder in PYTHONPATH, without its server."""

from __future__ import annotations

import sys
from types import ModuleType


def start(root: str) -> None:
    """ComfyUI as with --cpu, and this package, which lies in `root`, under its alias."""
    sys.argv = [sys.argv[0], "--cpu"]
    import comfy.options

    comfy.options.enable_args_parsing()
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [root]
    sys.modules["jacobi_ar"] = alias
