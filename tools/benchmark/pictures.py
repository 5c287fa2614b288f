"""Token grids of a decoder, kept on disk as they come: a measurement that was stopped goes on where it
was."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .specs import canonical, decoder_of
from .subject import Condition, Subject

# First seeds. References and decoders never share one: a same-picture decoder would give the very pictures.
REFERENCE, NOISE, DECODERS = 1_000_000, 2_000_000, 3_000_000


@dataclass(frozen=True)
class Pictures:
    """The first pictures of one decoder under one condition, in the order of their seeds."""

    tokens: np.ndarray  # [R, cells] int32
    passes: np.ndarray  # [R] int32


class PictureStore:
    """One file for each (decoder, condition, first seed) of a subject; larger requests extend it."""

    def __init__(self, folder: Path, subject: Subject, batch: int = 32) -> None:
        self.folder = folder / f"pictures-{subject.key}"
        self.subject, self.batch = subject, batch

    def name(self, spec: str, condition: Condition, first_seed: int) -> str:
        return f"{canonical(spec)} {self.subject.key_of(condition)} {first_seed}"

    def path(self, spec: str, condition: Condition, first_seed: int) -> Path:
        name = self.name(spec, condition, first_seed)
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.npz"

    def stored(self, spec: str, condition: Condition, first_seed: int) -> Pictures:
        """What is there, perhaps nothing."""
        path = self.path(spec, condition, first_seed)
        if not path.exists():
            return Pictures(np.zeros((0, self.subject.grid.cells), np.int32), np.zeros(0, np.int32))
        with np.load(path) as file:
            return Pictures(file["tokens"], file["passes"])

    def get(self, spec: str, condition: Condition, first_seed: int, count: int) -> Pictures:
        """The first `count` pictures; those that are missing are decoded, and stored batch by batch."""
        made = self.stored(spec, condition, first_seed)
        while len(made.tokens) < count:
            have = len(made.tokens)
            wanted = range(have, min(have + self.batch, count))
            target = self.subject.target(condition)
            result = self.subject.run(target, decoder_of(spec), condition, wanted, first_seed)
            assert result is not None
            tokens = result.tokens.flatten(1).numpy().astype(np.int32)
            passes = np.array(result.trace.passes_of, np.int32)
            made = Pictures(np.concatenate([made.tokens, tokens]), np.concatenate([made.passes, passes]))
            name = self.name(spec, condition, first_seed)
            save(self.path(spec, condition, first_seed), name=name, tokens=made.tokens, passes=made.passes)
        return Pictures(made.tokens[:count], made.passes[:count])


def save(path: Path, **arrays: np.ndarray | str) -> None:
    """Write an .npz so that a kill leaves the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)
    os.replace(partial, path)
