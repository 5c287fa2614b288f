"""Text on a node. The page breaks a line that is too long in the middle of a word, so it is broken here."""

from __future__ import annotations

import textwrap

COLUMNS = 47  # characters that have room on a node 360 pixels wide, which `web/start_sizes.js` gives it
BETWEEN = " · "  # what facts of one line stand apart by


def wrapped(text: str, columns: int = COLUMNS) -> str:
    """The text in lines of so many characters: broken between two facts, else between two words.

    A word that is longer, such as a path, keeps a line of its own.
    """
    return "\n".join(part for line in text.split("\n") for part in _lines(line, columns))


def _lines(line: str, columns: int) -> list[str]:
    lines: list[str] = []
    for fact in line.split(BETWEEN):
        if lines and len(lines[-1] + BETWEEN + fact) <= columns:
            lines[-1] += BETWEEN + fact
        else:
            lines += textwrap.wrap(fact, columns, break_long_words=False, break_on_hyphens=False)
    return lines or [""]
