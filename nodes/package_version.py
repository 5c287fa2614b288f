"""The version of this package, as its pyproject.toml has it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path


@lru_cache
def package_version() -> str:
    """For what is saved; "unknown" where the file did not come along."""
    try:
        text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else "unknown"
