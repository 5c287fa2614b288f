"""Which model files a person has, under which names the loader node shows them, and when one has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..model_loaders.checkpoint import INDEX_NAMES, WEIGHT_SUFFIXES
from .folders import walk
from .inputs import shown

Signature = tuple[tuple[str, int, int], ...]


def weight_choices(
    roots: Iterable[Path], known: Mapping[str, Collection[Path]] | None = None
) -> dict[str, Path]:
    """Shown name -> path of every weight file under these roots, and of every folder that is one model.

    Such a folder (in the Hugging Face layout or in Meta's) is one choice, so that nobody picks a single shard
    of it. `known` are folders of other packages under the names that lead what is in them. Of two equal names
    the first root wins, as everywhere in ComfyUI.
    """
    return _named(_models_in, roots, known)


def unfinished(roots: Iterable[Path], known: Mapping[str, Collection[Path]] | None = None) -> dict[str, Path]:
    """As `weight_choices`: folders with a model's config.json or index, and no weight file there or below."""
    return _named(_unfinished_in, roots, known)


def _named(
    find: Callable[[Path, bool], Iterator[Path]],
    roots: Iterable[Path],
    known: Mapping[str, Collection[Path]] | None,
) -> dict[str, Path]:
    found: dict[str, Path] = {}
    named = [("", root) for root in roots]
    named += [(name, folder) for name, folders in (known or {}).items() for folder in folders]
    for prefix, root in named:
        for path in find(root, bool(prefix)):
            name = PurePosixPath(prefix, path.relative_to(root).as_posix())
            found.setdefault(name.as_posix(), path)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _models_in(root: Path, itself: bool) -> Iterator[Path]:
    """Weight files and model folders below `root`; `itself` says whether the root may be one model."""
    for here, files, weights in _folders(root):
        if weights and is_one_model(files, weights) and (itself or here != Path(root)):
            yield here
        else:
            yield from (here / name for name in weights)


def _unfinished_in(root: Path, itself: bool) -> Iterator[Path]:
    begun, whole = [], set()
    for here, files, weights in _folders(root):
        if weights:
            whole |= {here, *here.parents}
        elif {"config.json", *INDEX_NAMES} & set(files) and (itself or here != Path(root)):
            begun.append(here)
    inside = whole - set(Path(root).parents) - {Path(root)}
    yield from (path for path in begun if path not in whole and not inside & set(path.parents))


def _folders(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder below `root` that is not hidden, its files, and those of them that are weight files."""
    for here, files in walk(root):
        visible = (name for name in files if not name.startswith("."))
        named = (name for name in visible if name.lower().endswith(WEIGHT_SUFFIXES))
        # Not a dangling link.
        yield here, files, sorted(name for name in named if os.path.isfile(here / name))


def is_one_model(files: Collection[str], weights: Collection[str]) -> bool:
    """Whether the files of a folder belong together: config.json beside the weights (Hugging Face), or
    params.json beside a consolidated file (Meta)."""
    meta = "params.json" in files and any(name.startswith("consolidated") for name in weights)
    return meta or "config.json" in files


def folder_choices(roots: Iterable[Path]) -> dict[str, Path]:
    """As `weight_choices`, folders in the Hugging Face layout only."""
    return {name: path for name, path in weight_choices(roots).items() if path.is_dir()}


def text_encoder_in(folders: dict[str, Path], width: int | None = None) -> Path | None:
    """The first folder whose config.json says T5, of those that give so many numbers a token where one does;
    a folder that cannot be read says nothing."""
    found: dict[Path, Any] = {}
    for folder in folders.values():
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and config.get("model_type") == "t5":
            found[folder] = config.get("d_model")
    fitting = (folder for folder, has in found.items() if has == width)
    return next(fitting, None) or next(iter(found), None)


def pick(
    field: str, choice: object, choices: dict[str, Path], roots: Iterable[Path], source: str = ""
) -> Path:
    """The path behind a shown name; a ValueError that says what there is where the name is unknown.

    `source` says where it can be had, as sentences without the last full stop.
    """
    if isinstance(choice, str) and choice in choices:
        return choices[choice]
    listed = ", ".join(choices) if choices else "nothing"
    where = " and ".join(str(root) for root in roots) or "no folder"
    todo = source or "Put it there, or name its folder in extra_model_paths.yaml"
    raise ValueError(
        f"{field} {shown(choice)} was not found. Looked in {where} and found: {listed}. {todo}; then press R "
        "to refresh and choose again."
    )


def signature(path: Path) -> Signature:
    """(name, size, time of change) of a file, or of each file in a folder: equal exactly while unchanged."""
    files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
    return tuple((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)
