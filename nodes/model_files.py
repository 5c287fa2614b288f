"""Which model files a person has, under which names the loader node shows them, and when one has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from ..model_loaders.checkpoint import WEIGHT_SUFFIXES
from .inputs import shown


def weight_choices(roots: Iterable[Path]) -> dict[str, Path]:
    """Shown name -> path of every weight file under these roots, and of every folder in the Hugging Face
    layout.

    Such a folder (config.json beside its weights) is one choice, so that nobody picks a single shard of it.
    Of two equal names the first root wins, as everywhere in ComfyUI.
    """
    found: dict[str, Path] = {}
    for root in roots:
        for folder, subfolders, files in os.walk(root, followlinks=True):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            here = Path(folder)
            visible = (name for name in files if not name.startswith("."))
            named = (name for name in visible if name.lower().endswith(WEIGHT_SUFFIXES))
            weights = sorted(name for name in named if os.path.isfile(here / name))  # not a dangling link
            if weights and "config.json" in files and here != Path(root):
                found.setdefault(here.relative_to(root).as_posix(), here)
                continue
            for name in weights:
                found.setdefault((here / name).relative_to(root).as_posix(), here / name)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def folder_choices(roots: Iterable[Path]) -> dict[str, Path]:
    """As `weight_choices`, folders in the Hugging Face layout only."""
    return {name: path for name, path in weight_choices(roots).items() if path.is_dir()}


def text_encoder_in(folders: dict[str, Path]) -> Path | None:
    """The first folder whose config.json says T5; one that cannot be read says nothing."""
    for folder in folders.values():
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and config.get("model_type") == "t5":
            return folder
    return None


def pick(field: str, choice: object, choices: dict[str, Path], roots: Iterable[Path]) -> Path:
    """The path behind a shown name; a ValueError that says what there is where the name is unknown."""
    if isinstance(choice, str) and choice in choices:
        return choices[choice]
    listed = ", ".join(choices) if choices else "nothing"
    where = " and ".join(str(root) for root in roots) or "no folder"
    raise ValueError(
        f"{field} {shown(choice)} was not found. Looked in {where} and found: {listed}. Put it there, or "
        "name its folder in extra_model_paths.yaml; then press R to refresh and choose again."
    )


def signature(path: Path) -> tuple[tuple[str, int, int], ...]:
    """(name, size, time of change) of a file, or of each file in a folder: equal exactly while unchanged."""
    files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
    return tuple((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)
