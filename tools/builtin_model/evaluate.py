"""What the weights can do: recall of all names, how peaked the laws are, how true pictures come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from ..benchmark.pictures import PictureStore
from ..benchmark.subject import Condition, Subject, load_subject
from .drawings import Drawings
from .origin import fingerprint
from .tokenise import Lessons

STEP_BY_STEP = "autoregressive"
SMALL = 32  # pixels a side that nearness is measured at
SAME = 1e-5  # mean squared difference below which two drawings count as one
SEED = 500_000_000


@dataclass(frozen=True)
class Weights:
    transformer: Path
    tokenizer: Path


def fingerprints(weights: Weights) -> list[str]:
    """Of both files' tensors: which weights figures are of."""
    return [fingerprint(load_file(path)) for path in (weights.transformer, weights.tokenizer)]


def small(pictures: Tensor) -> Tensor:
    """[N, side, side, 3] in 0..1 -> [N, SMALL * SMALL * 3]."""
    return F.adaptive_avg_pool2d(pictures.permute(0, 3, 1, 2), SMALL).flatten(1)


class References:
    """The trained drawings, to find which one a picture is nearest to."""

    def __init__(self, drawings: Drawings, lessons: Lessons) -> None:
        self.lessons = lessons
        parts = np.array_split(np.array(lessons.numbers), max(1, len(lessons.numbers) // 256))
        self.small = torch.cat([small(pictures(drawings, part.tolist())) for part in parts])

    def nearest(self, made: Tensor) -> list[int]:
        """Pictures [N, side, side, 3] -> indices of lessons."""
        return torch.cdist(small(made), self.small).argmin(1).tolist()

    def equal(self, one: int, other: int) -> bool:
        """Some packages draw two names alike."""
        return bool((self.small[one] - self.small[other]).square().mean() < SAME)

    def shows(self, found: int, name: str, style: str | None = None) -> bool:
        """Whether lesson `found` is, or looks like, a drawing of that name (and style)."""
        about = self.lessons.about
        wanted = [
            number
            for number, drawing in enumerate(about)
            if drawing.name == name and style in (None, drawing.style)
        ]
        return any(found == number or self.equal(found, number) for number in wanted)


def pictures(drawings: Drawings, numbers: Sequence[int]) -> Tensor:
    """[N, side, side, 3] in 0..1."""
    return torch.from_numpy(drawings.pixels[list(numbers)]).float() / 255


def subject_of(weights: Weights, prompts: Sequence[str], device: str) -> Subject:
    return load_subject(
        str(weights.transformer),
        str(weights.tokenizer),
        prompts=prompts,
        device=device,
        temperature=None,
        top_k=None,
        top_p=None,
    )


def sample(folder: Path, subject: Subject, condition: Condition, count: int, batch: int = 64) -> np.ndarray:
    """Tokens [count, cells] of step-by-step decoding, kept in `folder` as they come."""
    return PictureStore(folder, subject, batch).get(STEP_BY_STEP, condition, SEED, count).tokens


def recall(
    folder: Path,
    weights: Weights,
    references: References,
    asked: Sequence[tuple[str, str, str | None]],  # prompt, name, style if it has to be that one
    seeds: int,
    guidance: float,
    device: str,
) -> tuple[float, list[str]]:
    """Share of pictures nearest to a drawing of their own name, and the prompts that failed at least once."""
    subject = subject_of(weights, [prompt for prompt, _, _ in asked], device)
    tokens = sample(folder, subject, Condition(True, guidance), seeds * len(asked))
    right, failed = 0, []
    for number, found in enumerate(references.nearest(decoded(subject, tokens))):
        prompt, name, style = asked[number % len(asked)]
        if references.shows(found, name, style):
            right += 1
        else:
            failed.append(f"{prompt}: {references.lessons.about[found].name}")
    return right / len(tokens), failed


def decoded(subject: Subject, tokens: np.ndarray) -> Tensor:
    """Tokens [N, cells] -> pictures [N, side, side, 3] in 0..1."""
    assert subject.tokenizer is not None
    grid = torch.from_numpy(tokens).long().view(len(tokens), subject.grid.rows, subject.grid.cols)
    return subject.tokenizer.decode(grid)


def closeness(weights: Weights, drawings: Drawings, numbers: Sequence[int], device: str) -> list[float]:
    """PSNR of each drawing through the tokenizer and back, in dB."""
    subject = subject_of(weights, ["-"], device)
    assert subject.tokenizer is not None
    found = []
    for number in numbers:
        picture = pictures(drawings, [number])
        made = subject.tokenizer.decode(subject.tokenizer.encode(picture))
        found.append(float(-10 * (made - picture).square().mean().clamp_min(1e-9).log10()))
    return found


def ceiling(weights: Weights, references: References, device: str) -> float:
    """Recall of a model that knew every token: the drawings' own tokens, decoded."""
    subject = subject_of(weights, ["-"], device)
    lessons = references.lessons
    nearest = references.nearest(decoded(subject, lessons.tokens.numpy()))
    right = [references.shows(found, about.name) for found, about in zip(nearest, lessons.about, strict=True)]
    return sum(right) / len(right)


def write_json(path: Path, figures: dict[str, object]) -> None:
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
