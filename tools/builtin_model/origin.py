"""What tells one set of weights from another: the commit that trains them, and their own content."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """The repository's, "unknown" where there is none."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Of names and values, whatever their order in a file."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
