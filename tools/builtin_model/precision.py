"""bfloat16 where the machine is faster at it."""

from __future__ import annotations

from pathlib import Path

import torch


def half_where_fast(device: torch.device) -> torch.autocast:
    """Autocast to bfloat16 on a GPU, and on a CPU with instructions for it (without, it is slower)."""
    return torch.autocast(
        device.type, torch.bfloat16, enabled=device.type != "cpu" or cpu_multiplies_halves()
    )


def cpu_multiplies_halves() -> bool:
    try:
        return "avx512_bf16" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    except OSError:
        return False
