"""Which drawings the transformer learns, and the words that ask for them."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...model_loaders.families.builtin_prompt import NULL, PAD
from .drawings import Drawing
from .names import FILLERS

ANY = "<any>"
FIRST, FLAGS, SECOND = "flat", "flag", ("noto", "twemoji")
SYNONYMS = Path(__file__).with_name("synonyms.txt")


@dataclass(frozen=True)
class Choice:
    """`first`: at most so many names; `second`: so many of them in all styles, those of fewest words."""

    first: int = 10_000
    second: int = 500
    most_words: int = 7


def choose(about: Sequence[Drawing], choice: Choice) -> list[int]:
    """Numbers of the drawings, in their order.

    Only some names come in several styles: enough that a law is uncertain where no style is asked for, few
    enough for a small model.
    """
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for number, drawing in enumerate(about):
        if len(drawing.words) <= choice.most_words:
            numbers[drawing.name][drawing.style] = number
    # By a hash, so that a smaller choice is spread over the alphabet.
    names = sorted(numbers, key=lambda name: (name.count(" "), zlib.crc32(name.encode())))
    flags = [name for name in names if FLAGS in numbers[name]]
    drawn = [name for name in names if FIRST in numbers[name]][: max(1, choice.first - len(flags))]
    chosen = [numbers[name][FLAGS] for name in flags[: choice.first]]
    chosen += [numbers[name][FIRST] for name in drawn]
    several = [name for name in drawn if all(style in numbers[name] for style in SECOND)][: choice.second]
    chosen += [numbers[name][style] for name in several for style in SECOND]
    return sorted(chosen)


def vocabulary(chosen: Sequence[Drawing]) -> dict[str, int]:
    """Word -> id: the four kinds of special words first, then all words of names and of other names."""
    styles = [f"<{style}>" for style in (FIRST, *SECOND, FLAGS)]
    names = [words for drawing in chosen for words in (drawing.words, *drawing.others)]
    known = sorted({word for words in names for word in words})
    return {word: number for number, word in enumerate([PAD, NULL, ANY, *styles, *known])}


def reading(words: dict[str, int], about: Sequence[Drawing]) -> dict[str, object]:
    """What the package needs to read prompts, for the metadata of the weights."""
    names = {" ".join(drawing.words) for drawing in about}
    others = {" ".join(other) for drawing in about for other in drawing.others}
    synonyms = {}
    for line in SYNONYMS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        meant, said = line.split(":")
        synonyms |= {word: meant for word in said.split() if meant in words and word not in words}
    return {
        "any": ANY,
        "styles": {style: f"<{style}>" for style in (FIRST, *SECOND, FLAGS)},
        "fillers": sorted(FILLERS - set(words)),
        "synonyms": synonyms,
        "names": sorted(names),
        "other names": sorted(others - names),
    }
