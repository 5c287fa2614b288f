"""Prompts as the transformer sees them while it learns: the name, sometimes as people vary it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from .drawings import Drawing
from .selection import ANY, NULL, PAD


@dataclass(frozen=True)
class Variation:
    """Chances. `unnamed`: no prompt at all; `unstyled`: no style asked for; the rest concern the words."""

    unnamed: float = 0.1
    unstyled: float = 0.5
    shuffled: float = 0.2
    other_name: float = 0.1
    word_left_out: float = 0.05


def prompt_ids(
    drawing: Drawing, words: Mapping[str, int], prefix: int, variation: Variation, rng: random.Random
) -> list[int]:
    """`prefix` ids: the style, the words, padding. No prompt is `<null>` and padding."""
    if rng.random() < variation.unnamed:
        return padded([NULL], words, prefix)
    style = ANY if rng.random() < variation.unstyled else f"<{drawing.style}>"
    said = list(drawing.words)
    if drawing.others and rng.random() < variation.other_name:
        said = list(rng.choice(drawing.others))
    if len(said) > 1 and rng.random() < variation.word_left_out:
        said.pop(rng.randrange(len(said)))
    if rng.random() < variation.shuffled:
        rng.shuffle(said)
    return padded([style, *said], words, prefix)


def padded(names: list[str], words: Mapping[str, int], prefix: int) -> list[int]:
    ids = [words[name] for name in names][:prefix]
    return ids + [words[PAD]] * (prefix - len(ids))
