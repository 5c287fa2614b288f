"""What a command says where the Python that runs it lacks a package."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def lack(command: str, *packages: str) -> str:
    """A sentence that names the packages that are not installed and a Python that has them; "" if all are."""
    missing = [package for package in packages if find_spec(package) is None]
    if not missing:
        return ""
    names = " and ".join(missing)
    return (
        f"{command} needs {names}, which this Python ({sys.executable}) does not have. Run it with ComfyUI's "
        "Python, or with .dev/venv/bin/python (Windows: .dev\\venv\\Scripts\\python), which `python "
        "tools/dev.py demo` makes."
    )
