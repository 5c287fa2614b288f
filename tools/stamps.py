"""Which steps of the preparation are complete. A stamp is written last, so an interrupted step has none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


class Stamps:
    """A folder of small files, one a step, each holding what the step was made from (versions, requirements).

    A step is done when its stamp holds exactly the text that is wanted now: a changed version runs it again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def done(self, step: str, made_from: str) -> bool:
        try:
            return (self.folder / step).read_text(encoding="utf-8") == made_from
        except OSError:
            return False

    def write(self, step: str, made_from: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{step}.part"
        part.write_text(made_from, encoding="utf-8")
        os.replace(part, self.folder / step)


def recipe(lines: Iterable[str]) -> str:
    """The text of a stamp for a list of requirements."""
    return "\n".join(lines)


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
