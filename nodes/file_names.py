"""Names of files that this package writes: below the output folder, and never over one that is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath

from .inputs import check_text, shown

TRIES = 10_000
MOST_BYTES = 200  # in UTF-8: file systems take 255, and a number and a suffix follow
# What file names of Windows cannot hold, or not as they are written; workflows travel.
FORBIDDEN = '<>"|?*:'
DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)),
}


def is_device(name: str) -> bool:
    """Whether Windows means a device by a file of that name, whatever its suffix."""
    return name.split(".")[0].strip().lower() in DEVICES


def check_prefix(prefix: str) -> str:
    """A prefix that stays below the output folder on every system; ValueError otherwise."""
    check_text("filename_prefix", prefix)
    if not prefix.strip():
        raise ValueError("filename_prefix is empty; write the start of a file name.")
    windows, posix = PureWindowsPath(prefix), PurePosixPath(prefix)
    outside = windows.drive or windows.root or posix.root or ".." in windows.parts
    if outside or any(ord(letter) < 32 or letter in FORBIDDEN for letter in prefix):
        raise ValueError(
            f"filename_prefix {shown(prefix)} must name files below ComfyUI's output folder: no drive, no "
            f"leading slash, no .., none of {' '.join(FORBIDDEN)}. For example: tokens/picture."
        )
    for part in windows.parts:
        if is_device(part) or part != part.rstrip(". "):
            raise ValueError(
                f"filename_prefix {shown(prefix)} holds {shown(part)}, which Windows keeps for a device or "
                "writes without its last dot or space; choose another name."
            )
        if part.startswith("."):
            raise ValueError(
                f"filename_prefix {shown(prefix)} holds {shown(part)}: what begins with a dot is hidden, and "
                "would not be listed again; leave the dot out."
            )
    if (size := len(prefix.encode())) > MOST_BYTES:
        raise ValueError(
            f"filename_prefix is {size} bytes long (an English letter is one, a Chinese one three); take at "
            f"most {MOST_BYTES}."
        )
    if prefix.endswith(("/", "\\")):
        raise ValueError(f"filename_prefix {shown(prefix)} must end in the start of a file name.")
    return prefix


def write_new(folder: Path, name: Callable[[int], str], number: int, content: bytes) -> Path:
    """Writes the first file name(number), name(number + 1), … that is not there yet."""
    for tried in range(number, number + TRIES):
        path = folder / name(tried)
        try:
            # Exclusive: what another run wrote since the folder was listed stays.
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            continue
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
        except OSError:
            path.unlink(missing_ok=True)  # a full disk leaves no half file
            raise
        return path
    raise ValueError(
        f"{folder} has too many files named like {name(number)}; choose another filename_prefix."
    )
