"""The error that a person at the terminal is meant to read."""

from __future__ import annotations

from pathlib import Path


class Problem(Exception):
    """Something failed: `what` says what, `advice` what to do about it. Printed without a traceback."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}\n  What to do: {self.advice}"


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log file, indented, for an error message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "  (the log could not be read)"
    return (
        "\n".join(f"  | {line.rstrip()}" for line in lines[-count:] if line.strip()) or "  (the log is empty)"
    )
