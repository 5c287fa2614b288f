"""Peak memory of a decode, above what the loaded model takes.

On CUDA what torch had allocated at most. On the CPU the most that the process had resident, in a fresh
process for each decoder (what one decode has freed the next would find already there); Linux alone says it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from .specs import decoder_of
from .subject import Condition, Subject
from .timing import BASELINE, wait

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
LINUX = _RESET.exists()


def peak_mib(subject: Subject, spec: str, condition: Condition) -> float | None:
    """MiB above the loaded model while `spec` decodes one picture, in this process; None where unknown."""
    cuda = subject.device.type == "cuda"
    if not cuda and not LINUX:
        return None
    # What any decode makes once (kernels, thread pools) is there before.
    subject.run(subject.target(condition), decoder_of(BASELINE), condition, [0], passes=3)
    if cuda:
        wait(subject.device)
        before = torch.cuda.memory_allocated(subject.device)
        torch.cuda.reset_peak_memory_stats(subject.device)
        subject.run(subject.target(condition), decoder_of(spec), condition, [0])
        return (torch.cuda.max_memory_allocated(subject.device) - before) / 2**20
    before = _resident("VmRSS")
    _RESET.write_text("5")  # the high-water mark starts again from here
    subject.run(subject.target(condition), decoder_of(spec), condition, [0])
    return (_resident("VmHWM") - before) / 2**10


def peak_elsewhere(arguments: Sequence[str], spec: str, condition: Condition) -> float | None:
    """The same, by this very command in a process of its own; `arguments` say the model."""
    command = [sys.executable, sys.argv[0], "memory-of", *arguments, "--decoders", spec]
    done = subprocess.run(
        [*command, "--conditions", condition.key], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"measuring the memory of {spec} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _resident(field: str) -> float:
    """KiB."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return float(line.split()[1])
    raise RuntimeError(f"{_STATUS} has no {field}")
