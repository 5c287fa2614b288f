"""Checkpoint files as a list of named tensors, each read only when it is asked for.

Safetensors (one file, or a folder of shards with an index) and torch files. What a file is goes by its first
bytes, never by its name. Whatever is wrong becomes one `CheckpointError`; nothing in a file is ever executed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .errors import CheckpointError
from .torch_file import load_torch_file

WEIGHT_SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
INDEX_NAMES = (
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
WHOLE_NAMES = ("model.safetensors", "pytorch_model.bin")
SHARD = re.compile(r"-\d{5}-of-(?!00001)\d{5}\.\w+$")
# Prefixes that training wrappers (data parallel, torch.compile) put before the model's own names.
WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.)+|(?<=\.)_orig_mod\.")
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


class _Reader(Protocol):
    """One file: its tensors in the order in which they lie there."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor: ...


class Checkpoint:
    """Named tensors of a file or of a folder of shards; `tensors` is in file order, so read in that order.

    A tensor from `read` may be a view of the mapped file: copy it, as `assign` does, before keeping it.
    """

    def __init__(self, path: Path, readers: Mapping[str, _Reader], config: dict[str, Any] | None) -> None:
        self.path = path
        self.config = config
        self.description = path.name if len(readers) == 1 else f"{path.name} ({len(readers)} files)"
        self.metadata: dict[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self._source: dict[str, tuple[_Reader, str]] = {}
        for file, reader in readers.items():
            self.metadata |= reader.metadata
            for stored, info in reader.tensors.items():
                name = WRAPPERS.sub("", stored)
                if name in self.tensors:
                    raise CheckpointError(f"{path.name}: tensor {name} is there twice, again in {file}")
                self.tensors[name] = info
                self._source[name] = (reader, stored)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def read(self, name: str, rows: tuple[int, int] | None = None) -> Tensor:
        """One tensor as stored, on the CPU; with `rows` (first, one past the last) only these of it."""
        if name not in self._source:
            raise CheckpointError(f"{self.description}: tensor {name} is missing")
        reader, stored = self._source[name]
        return reader.read(stored, rows)

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """Shape of a tensor that must be there with `rank` dimensions: sizes are inferred from it."""
        if name not in self.tensors:
            raise CheckpointError(f"{self.description}: tensor {name} is missing")
        shape = self.tensors[name].shape
        if len(shape) != rank:
            raise CheckpointError(f"{self.description}: {name} needs {rank} dimensions, its shape is {shape}")
        return shape

    def count(self, prefix: str) -> int:
        """How many of `prefix`0., `prefix`1., … there are without a gap: layers, levels, blocks."""
        found = {name[len(prefix) :].split(".", 1)[0] for name in self.tensors if name.startswith(prefix)}
        number = 0
        while str(number) in found:
            number += 1
        return number


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Open a weight file, a folder of weights, or an index file. Headers are read now, tensors later."""
    path = Path(path)
    files, promised = _locate(path)
    readers = {file.name: _open_file(file) for file in files}
    lost = [f"{name} in {file}" for name, file in promised.items() if name not in readers[file].tensors]
    if lost:
        raise CheckpointError(f"{path.name}: tensors named by the index are not there: {', '.join(lost[:3])}")
    config = files[0].parent / "config.json"
    return Checkpoint(path, readers, _read_json(config) if config.is_file() else None)


def _locate(path: Path) -> tuple[list[Path], dict[str, str]]:
    """The weight files that belong to `path`, and which tensor an index promises in which of them."""
    if path.is_file():
        if path.name.endswith(".index.json"):
            return _from_index(path)
        if SHARD.search(path.name):  # one part of a model was chosen: the model is meant
            return _locate(path.parent)
        return [path], {}
    if not path.is_dir():
        raise CheckpointError(f"{path}: there is no such file or folder")
    for name in INDEX_NAMES:
        if (path / name).is_file():
            return _from_index(path / name)
    found = sorted(file for file in path.iterdir() if file.suffix in WEIGHT_SUFFIXES)
    whole = [path / name for name in WHOLE_NAMES if path / name in found]
    if whole or len(found) == 1:
        return (whole or found)[:1], {}
    if not found:
        raise CheckpointError(f"{path}: the folder has no weight file ({', '.join(WEIGHT_SUFFIXES)})")
    names = ", ".join(file.name for file in found[:4])
    if any(SHARD.search(file.name) for file in found):
        raise CheckpointError(f"{path}: the parts {names} need their index file too, {INDEX_NAMES[0]}")
    raise CheckpointError(f"{path}: the folder has several weight files ({names}); choose one of them")


def _from_index(index: Path) -> tuple[list[Path], dict[str, str]]:
    """Shards that an index names, all of them present."""
    promised = _read_json(index).get("weight_map")
    if not isinstance(promised, dict) or not promised or {type(f) for f in promised.values()} != {str}:
        raise CheckpointError(f"{index.name}: not an index of weight files (no weight_map)")
    names = sorted(set(promised.values()))
    # Names only: links are followed, because download caches keep the files themselves elsewhere.
    inside = {n for n in names if PureWindowsPath(n).name == PurePosixPath(n).name == n} - {"", ".."}
    outside = [n for n in names if n not in inside]
    if outside:
        raise CheckpointError(f"{index.name}: names a file outside its own folder, {outside[0]!r}; refused")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        listed = ", ".join(missing[:4]) + (", …" if len(missing) > 4 else "")
        raise CheckpointError(
            f"{index.parent}: {len(missing)} of {len(names)} weight files are missing: {listed}"
        )
    return [index.parent / name for name in names], promised


class _SafetensorsFile:
    """The library checks the header against the file's size; a tensor is a view of the mapped file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = safe_open(path, framework="pt", device="cpu")
            # Older versions of the library do not tell the order in the file.
            names = self._file.offset_keys() if hasattr(self._file, "offset_keys") else self._file.keys()
            self.metadata: dict[str, str] = dict(self._file.metadata() or {})
            self.tensors = {name: self._info(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path.name} is cut off or damaged, download it again ({error})"
            ) from error

    def _info(self, name: str) -> TensorInfo:
        part = self._file.get_slice(name)
        dtype = part.get_dtype()
        if dtype not in DTYPES:
            raise CheckpointError(f"{self._path.name}: {name} is stored as {dtype}, which is not supported")
        return TensorInfo(tuple(part.get_shape()), DTYPES[dtype])

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor:
        try:
            return self._file.get_tensor(name) if rows is None else self._file.get_slice(name)[slice(*rows)]
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{self._path.name}: {name} cannot be read ({error})") from error


class _TorchFile:
    def __init__(self, path: Path, *, mapped: bool) -> None:
        self._tensors = load_torch_file(path, mapped=mapped)
        self.metadata: dict[str, str] = {}
        self.tensors = {name: TensorInfo(tuple(t.shape), t.dtype) for name, t in self._tensors.items()}

    def read(self, name: str, rows: tuple[int, int] | None) -> Tensor:
        return self._tensors[name] if rows is None else self._tensors[name][slice(*rows)]


def _open_file(path: Path) -> _Reader:
    """Choose the reader by the first bytes."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from error
    _refuse_impostor(path, head)
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


def _refuse_impostor(path: Path, head: bytes) -> None:
    """What people find under a weight file's name when a download went wrong."""
    if not head:
        raise CheckpointError(f"{path.name} is empty: download it again")
    if head.startswith(b"version https://git-lfs"):
        raise CheckpointError(
            f"{path.name} is only a Git LFS pointer: run `git lfs pull`, or download the file"
        )
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CheckpointError(f"{path.name} is a web page: the download needs a login or another address")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from error
    _refuse_impostor(path, data[:512])
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is damaged: it is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path.name}: a JSON object was expected, it holds a {type(value).__name__}")
    return value
