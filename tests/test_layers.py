"""The import rules between the layers, read off the syntax trees.

nodes ──> model_loaders ──> decoding.{grid, target}
  └─────> decoding ──> torch, numpy, standard library
nodes/host.py ──> comfy.*, folder_paths, server: the only file that does
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("decoding", "model_loaders", "nodes")
HOST = {
    "comfy",
    "comfy_api",
    "comfy_execution",
    "comfy_extras",
    "execution",
    "folder_paths",
    "latent_preview",
    "server",
}
SEAM = {"decoding.grid", "decoding.target"}  # all of the decoding core that a model loader may know


def imported_modules(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file, function bodies included; relative ones start with the layer.

    Example: in `model_loaders.target`, `from ..decoding.grid import TokenGrid` gives "decoding.grid", and
    `from ..decoding import grid` the same. One level too many climbs out of the repository and gives "..".
    """
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.lineno, node.module or ""
                continue
            if node.level > len(package) + 1:
                yield node.lineno, ".."
                continue
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                target = ".".join([*base, alias.name])
                yield node.lineno, target if is_module(target) else ".".join(base)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def fault_of(layer: str, file: str, name: str, relative: bool) -> str | None:
    """What is wrong with this import, or None."""
    top = name.split(".")[0]
    if name == "..":
        return "climbs out of the repository"
    if relative:
        if layer == "decoding" and top != "decoding":
            return "decoding knows nothing above it"
        if layer == "model_loaders" and top != "model_loaders" and name not in SEAM:
            return "model_loaders may import only decoding.grid and decoding.target"
        return None
    if top in LAYERS or top == "jacobi_ar":
        return "imports inside the package are relative"
    if top in HOST:
        if layer != "nodes":
            return f"{layer} never imports the host"
        if top != "comfy_api" and file != "nodes/host.py":
            return "only nodes/host.py imports comfy.*, folder_paths and server"
    if layer == "decoding":
        if top in {"os", "pathlib", "io", "shutil", "tempfile"}:
            return "decoding has no files"
        if top not in {"torch", "numpy", "__future__"} and top not in sys.stdlib_module_names:
            return "decoding needs torch, numpy and the standard library, nothing else"
    return None


def check(path: Path, source: str) -> list[str]:
    relative_path = path.relative_to(ROOT)
    is_package = path.name == "__init__.py"
    parts = relative_path.with_suffix("").parts
    module = ".".join(parts[:-1] if is_package else parts)
    relative_lines = {
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.level
    }
    found = []
    for line, name in imported_modules(source, module, is_package):
        fault = fault_of(parts[0], relative_path.as_posix(), name, line in relative_lines)
        if fault:
            found.append(f"{relative_path.as_posix()}:{line}: {name}: {fault}")
    return found


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_imports_follow_the_layers() -> None:
    found = [
        fault for path in python_files(*LAYERS) for fault in check(path, path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("decoding/x.py", "import PIL.Image", "nothing else"),
        ("decoding/x.py", "def f():\n    from ..model_loaders import load", "nothing above"),
        ("decoding/x.py", "from pathlib import Path", "no files"),
        ("model_loaders/x.py", "import comfy.ops", "never imports the host"),
        ("model_loaders/x.py", "from ..decoding import loop", "only decoding.grid"),
        ("model_loaders/families/x.py", "from ...nodes import host", "only decoding.grid"),
        ("model_loaders/x.py", "import decoding.grid", "relative"),
        ("nodes/x.py", "import folder_paths", "only nodes/host.py"),
        ("nodes/x.py", "from ...outside import y", "climbs out"),
        ("nodes/x.py", "from jacobi_ar.decoding import decode", "relative"),
    ],
)
def test_a_wrong_import_is_found(file: str, source: str, fault: str) -> None:
    assert [text for text in check(ROOT / file, source) if fault in text]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "decoding/x.py",
            "import math\nimport numpy as np\nfrom torch import Tensor\nfrom .grid import TokenGrid",
        ),
        (
            "model_loaders/families/x.py",
            "from ...decoding.grid import TokenGrid\nfrom ..errors import GridError",
        ),
        ("model_loaders/x.py", "from ..decoding import grid"),
        ("nodes/x.py", "from comfy_api.latest import io\nfrom ..decoding import decode\nfrom . import host"),
        ("nodes/host.py", "import comfy.utils\nimport folder_paths"),
    ],
)
def test_a_right_import_passes(file: str, source: str) -> None:
    assert check(ROOT / file, source) == []


def test_nothing_puts_the_repository_on_the_import_path() -> None:
    found = []
    for path in python_files(*LAYERS, "tools", "tests"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"insert", "append", "extend"}
                and ast.unparse(node.func.value) == "sys.path"
            ):
                found.append(f"{path.relative_to(ROOT).as_posix()}:{node.lineno}")
    assert not found, found


def test_the_root_imports_the_nodes_only_inside_a_package() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    guards = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "__package__"
    ]
    guarded = {inner for guard in guards for inner in ast.walk(guard)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports and all(node in guarded for node in imports)
