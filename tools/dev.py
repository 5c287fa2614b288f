"""Development commands: `python tools/dev.py demo`, `test` or `serve` (`--help` says what each takes).

Any Python from 3.10 on runs this file, with nothing installed: it makes the environment that they need.
"""

import os
import sys
from types import ModuleType

OLDEST_PYTHON = (3, 10)


def main():
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(f"dev.py needs Python 3.10 or newer; this is Python {found} ({sys.executable}).")
    # The repository as the module `jacobi_ar`: on sys.path its `nodes` would shadow ComfyUI's.
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["jacobi_ar"] = alias
    from jacobi_ar.tools.commands import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
