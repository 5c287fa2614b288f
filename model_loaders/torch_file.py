"""Files written by `torch.save`, opened without executing anything in them."""

from __future__ import annotations

import argparse
import pickle
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .errors import CheckpointError

# Where training scripts put the weights, in the order in which the official loaders look.
CONTAINERS = ("model", "module", "state_dict", "ema")
# What torch raises on a damaged file: its unpickler follows the damaged opcodes wherever they lead.
DAMAGE = (
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    EOFError,
    OSError,
    ImportError,
    MemoryError,
    struct.error,
    pickle.UnpicklingError,
)


def load_torch_file(path: Path, *, mapped: bool) -> dict[str, Tensor]:
    """The state dict in a torch file. `mapped`: a zip archive, whose tensors stay on disk until used."""
    try:
        with _training_arguments_allowed():
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except DAMAGE as error:
        raise CheckpointError(_sentence(path, error)) from error
    tensors = _state_dict(path, content)
    size = path.stat().st_size
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise CheckpointError(f"{path.name}: {name} is not a plain tensor")
        if tensor.untyped_storage().nbytes() > size:
            raise CheckpointError(f"{path.name} is damaged: {name} claims more bytes than the file has")
    return tensors


def _state_dict(path: Path, content: Any) -> dict[str, Tensor]:
    """Unwrap the container of a training script, where there is one."""
    found = f"a {type(content).__name__}"
    if isinstance(content, Mapping):
        found = ", ".join(str(key)[:40] for key in list(content)[:5]) or "nothing"
        inner = next((key for key in CONTAINERS if isinstance(content.get(key), Mapping)), None)
        weights = content if inner is None else content[inner]
        tensors = {k: v.detach() for k, v in weights.items() if isinstance(k, str) and isinstance(v, Tensor)}
        if tensors:
            return tensors
    places = ", ".join(CONTAINERS)
    raise CheckpointError(f"{path.name}: no weights at the top or under {places}; the file holds {found}")


@contextmanager
def _training_arguments_allowed() -> Iterator[None]:
    """Training scripts store their `argparse.Namespace` beside the weights; it is plain data."""
    if argparse.Namespace in torch.serialization.get_safe_globals():
        yield  # someone else allowed it: leaving torch's context would take that away
        return
    with torch.serialization.safe_globals([argparse.Namespace]):
        yield


def _sentence(path: Path, error: BaseException) -> str:
    text = str(error)
    code = re.search(r"GLOBAL ([\w.]+)", text)
    if code:
        return (
            f"{path.name} holds more than plain weights: reading it would run {code.group(1)}. "
            "Nothing was executed. Use a .safetensors version, or one saved with plain tensors only"
        )
    if "TorchScript" in text:
        return f"{path.name} is a TorchScript program, not a file of weights. Nothing was executed"
    reason = re.split(r"[.!?]?(?:\s*\n|(?<=[.!?])\s|$)", text.strip(), maxsplit=1)[0]
    if not 0 < len(reason) <= 160:  # half a sentence would be no help
        reason = type(error).__name__
    return f"{path.name} is cut off or damaged: download it again ({reason})"
