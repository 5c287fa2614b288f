"""Drawings to tokens, with the words of the model: what the transformer trains on."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from ..problem import Problem
from .drawings import Drawing, Drawings
from .selection import Choice, choose, vocabulary
from .tokenizer_network import TokenizerNetwork


@dataclass(frozen=True)
class Lessons:
    """`tokens` [N, cells] int64; `numbers` of the drawings among all; `codebook` [V, c] unit rows."""

    tokens: torch.Tensor
    numbers: tuple[int, ...]
    about: tuple[Drawing, ...]
    words: dict[str, int]
    codebook: torch.Tensor

    @property
    def names(self) -> list[str]:
        """Every name once, in order."""
        return sorted({drawing.name for drawing in self.about})


@torch.no_grad()
def tokenise(folder: Path, drawings: Drawings, choice: Choice, network: TokenizerNetwork) -> None:
    """The `tokens` command."""
    numbers = choose(drawings.about, choice)
    network.eval()
    found = []
    for part in torch.tensor(numbers).split(32):
        found.append(network.nearest(network.encode(drawings.pictures(part.numpy()))).flatten(1))
    chosen = [drawings.about[number] for number in numbers]
    folder.mkdir(parents=True, exist_ok=True)
    about = {"about": [asdict(one) for one in chosen], "words": vocabulary(chosen)}
    with (folder / "lessons.part").open("wb") as file:
        np.savez_compressed(
            file,
            tokens=torch.cat(found).numpy().astype(np.int32),
            numbers=np.array(numbers),
            codebook=network.codebook.numpy(),
            about=np.array(json.dumps(about)),
        )
    os.replace(folder / "lessons.part", folder / "lessons.npz")
    names = len({one.name for one in chosen})
    print(f"{len(chosen)} drawings of {names} names, {len(about['words'])} words")


def load_lessons(folder: Path) -> Lessons:
    try:
        return _read(folder / "lessons.npz")
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise Problem(
            f"{folder / 'lessons.npz'} is damaged: {error}", "delete it and run `make.py tokens`"
        ) from error


def _read(path: Path) -> Lessons:
    with np.load(path) as file:
        listed = json.loads(str(file["about"]))
        about = tuple(map(Drawing.read, listed["about"]))
        return Lessons(
            torch.from_numpy(file["tokens"]).long(),
            tuple(file["numbers"].tolist()),
            about,
            listed["words"],
            torch.from_numpy(file["codebook"]),
        )
