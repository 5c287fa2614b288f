"""Text in Pillow's own font, with the system's fonts for what it lacks, and words where they lack it too.

Pillow's font holds little more than ASCII: no accents, no other scripts, no emoji.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache, lru_cache
from itertools import groupby

from PIL import ImageDraw, ImageFont

# Looked for by name in the system's font folders (Linux, Windows, macOS); one that is not there is passed
# over.
SYSTEM_FONTS = (
    "DejaVuSans.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSans-Regular.ttf",
    "wqy-zenhei.ttc",
    "segoeui.ttf",
    "msyh.ttc",
    "YuGothM.ttc",
    "malgun.ttf",
    "seguisym.ttf",
    "Arial Unicode.ttf",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "AppleSDGothicNeo.ttc",
)
LOOKALIKES = {
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "≥": ">=",
    "≤": "<=",
}
NO_CHARACTER = "\U0010ffff"  # never assigned: every font draws its "missing" box
MOST_CHARACTERS = 2000  # of a text; no sheet has room for more
INVISIBLE = {"Cf", "Cc", "Mn", "Me"}  # joiners, variation selectors, marks that are not part of a letter

Run = tuple[ImageFont.FreeTypeFont, str]


@cache
def own_font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


@cache
def font(number: int, size: int) -> ImageFont.FreeTypeFont | None:
    """Font `number`: 0 is Pillow's own, the rest are the system's; None where it is not installed."""
    if number == 0:
        return own_font(size)
    try:
        return ImageFont.truetype(SYSTEM_FONTS[number - 1], size)
    except OSError:
        return None


@lru_cache(4096)
def font_with(character: str) -> int | None:
    """The first font that has the character; None where none has."""
    for number in range(len(SYSTEM_FONTS) + 1):
        face = font(number, 16)
        if face is not None and bytes(face.getmask(character)) != bytes(face.getmask(NO_CHARACTER)):
            return number
    return None


def legible(text: str) -> str:
    """The text with characters that no font here has put into words: "🐙 ça" -> "(octopus) ça".

    Line ends and all other white space become spaces: to draw a line end is an error in some fonts.
    """
    shown = []
    spaced = (" " if c.isspace() else c for c in unicodedata.normalize("NFC", text))
    characters = [c for c in spaced if unicodedata.category(c) not in INVISIBLE]
    for missing, group in groupby(characters, lambda character: font_with(character) is None):
        run = "".join(group)
        shown.append(in_words(run) if missing else run)
    return "".join(shown)


def in_words(run: str) -> str:
    """Symbols by their names, letters of a script that is not there by their number."""
    if all(character in LOOKALIKES or plain(character) for character in run):
        return "".join(LOOKALIKES.get(character) or plain(character) for character in run)
    names = [unicodedata.name(character, "unknown").lower() for character in run]
    if all(unicodedata.category(character).startswith("S") for character in run):
        return "".join(f"({name})" for name in names)
    scripts = ", ".join(dict.fromkeys(name.split()[0].upper() for name in names))
    return f"({len(run)} characters: {scripts})"


def plain(character: str) -> str:
    """The ASCII letter under the accent; empty where there is none."""
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()


def runs(text: str, size: int) -> list[Run]:
    """The text cut where the font changes."""
    numbered = groupby(legible(text), lambda character: font_with(character) or 0)
    return [(font(number, size) or own_font(size), "".join(group)) for number, group in numbered]


def length(text: str, size: int) -> float:
    """Width in pixels."""
    return sum(face.getlength(part) for face, part in runs(text, size))


def draw_text(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, fill: str) -> None:
    """One line; `at` is the left end of its baseline."""
    x, y = at
    for face, part in runs(text, size):
        draw.text((x, y), part, font=face, fill=fill, anchor="ls")
        x += face.getlength(part)


def shortened(text: str, size: int, width: float) -> str:
    """As much of the text as `width` pixels hold; an ellipsis stands for the rest."""
    text = legible(text[:MOST_CHARACTERS])
    if length(text, size) <= width:
        return text
    return text[: holds(text, size, width - length("…", size))].rstrip() + "…"


def wrapped(text: str, size: int, width: float, most: int) -> list[str]:
    """The text in lines of `width` pixels, at most `most`; a word is broken only where it fills a line."""
    rest, lines = " ".join(legible(text[:MOST_CHARACTERS]).split()), []
    while rest and len(lines) < most - 1:
        end = holds(rest, size, width)
        if end < len(rest):
            end = rest.rfind(" ", 0, end + 1) if " " in rest[: end + 1] else max(end, 1)
        lines.append(rest[:end])
        rest = rest[end:].lstrip()
    return [*lines, shortened(rest, size, width)] if rest else lines


def holds(text: str, size: int, width: float) -> int:
    """How many characters of the text fit."""
    return bisect_right(range(1, len(text) + 1), width, key=lambda end: length(text[:end], size))
