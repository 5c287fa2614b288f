"""The drawings as one array of pixels and one list of what they show, made once from the packages."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..problem import Problem
from .names import has_skin_tone, words_of
from .rasterise import rasterise
from .sources import SOURCES, fetch, icons

REMEDY = "give the folder `drawings` in the --home of `make.py data`, or delete it and run that again"
HELD_OUT = 20  # one name in so many is kept from the tokenizer's training, in all its styles


@dataclass(frozen=True)
class Drawing:
    """What one picture shows. `others` are other names that its package gives it."""

    style: str
    words: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Drawing:
        """From `asdict` through JSON."""
        return cls(saved["style"], tuple(saved["words"]), tuple(map(tuple, saved["others"])))

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def held_out(self) -> bool:
        """By the name alone, so that no style of a held-out name was seen."""
        return zlib.crc32(self.name.encode()) % HELD_OUT == 0


@dataclass(frozen=True)
class Drawings:
    """`pixels` [N, side, side, 3] uint8, mapped from disk; `about` has one entry for each."""

    pixels: np.ndarray
    about: tuple[Drawing, ...]

    def __len__(self) -> int:
        return len(self.about)

    def pictures(self, numbers: Sequence[int] | np.ndarray) -> Tensor:
        """[B, 3, side, side] float32 in -1..1."""
        chosen = torch.from_numpy(self.pixels[np.asarray(numbers)])
        return chosen.permute(0, 3, 1, 2).float() / 127.5 - 1


def gather(packages: Path) -> list[tuple[Drawing, str]]:
    """Every drawing once for each style and name, with its SVG; downloads what is missing."""
    found = []
    for source in SOURCES:
        listed = list(icons(source, fetch(source, packages)))
        keys, names = {icon.key for icon in listed}, set()
        for icon in listed:
            words = words_of(icon.key)
            if has_skin_tone(icon.key, keys) or words in names:
                continue
            names.add(words)
            others = {words_of(key) for key in icon.others} - {words}
            found.append((Drawing(source.style, words, tuple(sorted(others))), icon.svg))
    return found


def save(folder: Path, pictures: Iterable[np.ndarray], about: list[Drawing], side: int) -> None:
    """Write a set of drawings; the list comes last, so that a stopped command leaves no half set."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.lib.format.open_memmap(folder / "pixels.part", "w+", np.uint8, (len(about), side, side, 3))
    for number, picture in enumerate(pictures):
        pixels[number] = picture
        if number % 250 == 249 or number + 1 == len(about):
            print(f"{number + 1} of {len(about)} drawings", flush=True)
    pixels.flush()
    os.replace(folder / "pixels.part", folder / "pixels.npy")
    text = json.dumps([asdict(drawing) for drawing in about])
    (folder / "drawings.part").write_text(text, encoding="utf-8")
    os.replace(folder / "drawings.part", folder / "drawings.json")


def load(folder: Path) -> Drawings:
    """Raises `Problem` where the folder does not hold a whole set."""
    try:
        listed = json.loads((folder / "drawings.json").read_text(encoding="utf-8"))
        found = Drawings(np.load(folder / "pixels.npy", mmap_mode="r"), tuple(map(Drawing.read, listed)))
    except (OSError, EOFError, TypeError, KeyError, ValueError) as error:
        raise Problem(f"no drawings can be read from {folder}: {error}", REMEDY) from error
    if not found.about or found.pixels.shape[:1] != (len(found),):
        raise Problem(f"{folder} lists {len(found)} drawings of {len(found.pixels)}", REMEDY)
    return found


def prepare(folder: Path, packages: Path, side: int) -> None:
    """The `data` command."""
    if (folder / "drawings.json").exists():
        print(f"{folder} is complete")
        return
    found = gather(packages)
    save(folder, (rasterise(svg, side) for _, svg in found), [drawing for drawing, _ in found], side)
