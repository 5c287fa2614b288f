"""Walking through a person's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each folder from `root` down that is not hidden, with the names of its files.

    Links are followed, as people keep models on other disks; a folder that is reached twice, by a link that
    leads back up for one, comes once.
    """
    visited: set[str] = set()
    for folder, subfolders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:
            subfolders.clear()
            continue
        visited.add(real)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield Path(folder), files
