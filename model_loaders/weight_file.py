"""One weight file: what is in it, and its tensors one at a time.

What a file is goes by its first bytes, never by its name.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .errors import CheckpointError
from .torch_file import load_torch_file

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class TensorInfo:
    """What is known of a tensor before it is read."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Reader(Protocol):
    """One file: its tensors in the order in which they lie there."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor: ...

    def release(self) -> None:
        """Let go of memory until the next `read`."""


class _SafetensorsFile:
    """Plain reads, not a mapped file: the pages of a large map would count as this program's memory, and a
    file that is cut off while it is read would end the program."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with safe_open(path, framework="pt", device="cpu"):  # checks the header against the file's size
                pass
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header: dict[str, Any] = json.loads(file.read(length))
        except (SafetensorError, OSError, ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{path.name} is cut off or damaged, download it again ({error})"
            ) from error
        self.metadata: dict[str, str] = header.pop("__metadata__", None) or {}
        entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
        self.tensors = {name: self._info(name, entry) for name, entry in entries}
        self._offsets = {name: 8 + length + entry["data_offsets"][0] for name, entry in entries}

    def _info(self, name: str, entry: dict[str, Any]) -> TensorInfo:
        if entry["dtype"] not in DTYPES:
            stored = entry["dtype"]
            raise CheckpointError(f"{self._path.name}: {name} is stored as {stored}, which is not supported")
        return TensorInfo(tuple(entry["shape"]), DTYPES[entry["dtype"]])

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor:
        info, offset = self.tensors[name], self._offsets[name]
        shape, row = info.shape, math.prod(info.shape[1:]) * info.dtype.itemsize
        if rows is not None:
            first, stop, _ = slice(*rows).indices(shape[0])
            shape, offset = (stop - first, *shape[1:]), offset + first * row
        data = torch.empty(math.prod(shape) * info.dtype.itemsize, dtype=torch.uint8)
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                done = file.readinto(memoryview(data.numpy()))
        except OSError as error:
            raise CheckpointError(f"{self._path.name}: {name} cannot be read ({error})") from error
        if done < len(data):
            raise CheckpointError(
                f"{self._path.name}: {name} is cut off; the file changed since it was opened"
            )
        return data.view(info.dtype).view(shape)

    def release(self) -> None:
        """It holds none."""


class _TorchFile:
    def __init__(self, path: Path, *, mapped: bool) -> None:
        self._path, self._mapped = path, mapped
        self._tensors: dict[str, Tensor] | None = load_torch_file(path, mapped=mapped)
        self.metadata: dict[str, str] = {}
        self.tensors = {name: TensorInfo(tuple(t.shape), t.dtype) for name, t in self._tensors.items()}

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor:
        if self._tensors is None:
            self._tensors = load_torch_file(self._path, mapped=self._mapped)
        tensor = self._tensors.get(name)
        if tensor is None or TensorInfo(tuple(tensor.shape), tensor.dtype) != self.tensors[name]:
            raise CheckpointError(f"{self._path.name}: {name} is not as it was; the file changed meanwhile")
        return tensor if rows is None else tensor[slice(*rows)]

    def release(self) -> None:
        """Mapped pages count as this program's memory until the map is gone."""
        self._tensors = None


def open_weight_file(path: Path) -> Reader:
    """Choose the reader by the first bytes."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from error
    refuse_impostor(path, head)
    # Safetensors first: the eight bytes before its header are a length, and may look like anything.
    if head[8:9] == b"{":
        header = int.from_bytes(head[:8], "little")
        if header > size - 8:
            raise CheckpointError(f"{path.name} is cut off: {size:,} bytes, its header alone has {header:,}")
        return _SafetensorsFile(path)
    if head.startswith(b"PK\x03\x04"):
        return _TorchFile(path, mapped=True)
    if head.startswith(b"\x80"):  # the pickle protocol: torch's format before its zip archives
        return _TorchFile(path, mapped=False)
    raise CheckpointError(f"{path.name} is no safetensors and no torch file, or its beginning is damaged")


def refuse_impostor(path: Path, head: bytes) -> None:
    """What people find under a weight file's name when a download went wrong."""
    if not head:
        raise CheckpointError(f"{path.name} is empty: download it again")
    if head.startswith(b"version https://git-lfs"):
        raise CheckpointError(
            f"{path.name} is only a Git LFS pointer: run `git lfs pull`, or download the file"
        )
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CheckpointError(f"{path.name} is a web page: the download needs a login or another address")
