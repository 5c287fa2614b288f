"""Without transformers every model loads and draws; without tokenizers those whose prompts are no token
ids."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
import torch
from jacobi_ar.decoding import SamplingSettings, decode, run_to_end, same_picture
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.errors import DependencyError
from jacobi_ar.model_loaders.load import load_image_model

from .toy_families import TOYS, load_toy, toy_prompts

ROOT = Path(__file__).resolve().parents[1]
BUILDERS = {name: build for toys in TOYS.values() for name, build in toys.items()}
NO_TEXT = {
    "built-in",
    "LlamaGen c2i",
    "LlamaGen t2i",
}  # t2i's text encoder is asked for when a prompt is encoded


def draws(name: str, folder: Path) -> bool:
    model = load_toy(name, folder)
    grid = TokenGrid(4, 4, model.grids[0].row_end)
    decoding = decode(
        model.target(grid, 2.0), toy_prompts(model, 1), same_picture(7), SamplingSettings(), [1]
    )
    return bool((run_to_end(decoding).tokens >= 0).all())


@pytest.mark.parametrize("name", BUILDERS)
def test_a_model_draws_without_transformers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert draws(name, tmp_path)


@pytest.mark.parametrize("name", BUILDERS)
def test_without_tokenizers_the_rest_is_told_what_it_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NO_TEXT:
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        assert draws(name, tmp_path)
        return
    folder = BUILDERS[name](tmp_path / "toy")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DependencyError, match="the Python package tokenizers, which does not import"):
        load_image_model(folder, device="cpu", dtype=torch.float32)


def test_neither_is_imported_before_it_is_needed() -> None:
    for layer in ("decoding", "model_loaders", "nodes"):
        for path in (ROOT / layer).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names.append(node.module or "")
                assert not {name.split(".")[0] for name in names} & {"transformers", "tokenizers"}, path
