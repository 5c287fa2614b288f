"""tools/bench.py and tools/convert.py run by a Python that has no torch: help, and one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # -S leaves out what is installed: only Python's own modules are there.
    command = [sys.executable, "-S", "-E", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["bench.py", "convert.py"])
def test_help_needs_no_torch(name: str) -> None:
    done = run(str(TOOLS / name), "--help")
    assert done.returncode == 0 and f"python tools/{name}" in done.stdout
    assert "ComfyUI's Python" in done.stdout


@pytest.mark.parametrize(
    "arguments", [("bench.py", "table"), ("convert.py", "a.pt", "b.safetensors")], ids=lambda a: a[0]
)
def test_without_torch_a_sentence_says_which_python_to_take(arguments: tuple[str, ...]) -> None:
    done = run(str(TOOLS / arguments[0]), *arguments[1:])
    assert done.returncode == 1 and done.stdout == ""
    assert "needs torch and safetensors" in done.stderr and ".dev/venv/bin/python" in done.stderr
    assert done.stderr.count("\n") == 1
