"""Makes the repository importable as `jacobi_ar` without putting its root on sys.path.

The root holds a package `nodes`, and ComfyUI has a module of that name: on sys.path the root would shadow it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]

# `python -m pytest` puts the working folder in front of everything.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

if "jacobi_ar" not in sys.modules:
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [str(ROOT)]
    sys.modules["jacobi_ar"] = alias


class PlainRootFolder:
    """Collects the root as a folder, not as a package.

    pytest imports the `__init__.py` of packages, and ours needs ComfyUI. Its guard helps only where the name
    of the folder, such as ComfyUI-JacobiAR, is no Python identifier.
    """

    @pytest.hookimpl
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(PlainRootFolder())
