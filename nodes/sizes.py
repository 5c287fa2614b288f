"""Numbers as people read them."""

from __future__ import annotations


def shown_count(number: int) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"


def counted(number: int, one: str, several: str = "") -> str:
    """For example: 1 model, 2 models. `several` where it is not `one` with an s."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def shown_bytes(number: float) -> str:
    if number >= 2**29:
        return f"{number / 2**30:.2f} GiB"
    return f"{number / 2**20:.{1 if number < 10 * 2**20 else 0}f} MiB"
