"""Checkpoint files as a list of named tensors, each read only when it is asked for.

Safetensors (one file, or a folder of shards with an index) and torch files. What a file is goes by its first
bytes, never by its name. Whatever is wrong becomes one `CheckpointError`; nothing in a file is ever executed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import torch
from torch import Tensor

from . import packing
from .errors import CheckpointError
from .float8 import from_float8
from .weight_file import Reader, TensorInfo, open_weight_file, refuse_impostor

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
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class Checkpoint:
    """Named tensors of a file or of a folder of shards; `tensors` is in file order, so read in that order.

    A tensor from `read` may be a view of the mapped file: copy it, as `assign` does, before keeping it.
    """

    def __init__(self, path: Path, readers: Mapping[str, Reader], config: dict[str, Any] | None) -> None:
        self.path = path
        self.config = config
        self.description = path.name if len(readers) == 1 else f"{path.name} ({len(readers)} files)"
        self.metadata: dict[str, str] = {}
        self.tensors: dict[str, TensorInfo] = {}
        # What was taken from it, and whether by a layer that may store it in float8.
        self.used: dict[str, bool] = {}
        self.used_texts: dict[str, str] = {}  # and files beside it: name -> content
        self._source: dict[str, tuple[Reader, str]] = {}
        self._reading: Reader | None = None
        for file, reader in readers.items():
            self.metadata |= reader.metadata
            for stored, info in reader.tensors.items():
                name = WRAPPERS.sub("", stored)
                if name in self.tensors:
                    raise CheckpointError(f"{path.name}: tensor {name} is there twice, again in {file}")
                self.tensors[name] = info
                self._source[name] = (reader, stored)
            if len(readers) > 1:
                reader.release()
        packed = [name for name in self.tensors if name.startswith(packing.TOKENIZER)]
        self._packed = {name.removeprefix(packing.TOKENIZER): self.tensors.pop(name) for name in packed}
        self._scales = self._take_scales()

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def read(self, name: str, rows: tuple[int, int] | None = None) -> Tensor:
        """One tensor on the CPU; with `rows` (first, one past the last) only these of it.

        As stored, but float8 comes with its scale applied, in float32, and without a scale in bfloat16, which
        holds each of its numbers.
        """
        if name not in self.tensors:
            raise CheckpointError(f"{self.description}: tensor {name} is missing")
        self.used.setdefault(name, False)
        value = self._read(name, rows)
        if value.dtype not in FLOAT8:
            return value
        if name not in self._scales:
            return value.to(torch.bfloat16)
        scale = self._read(self._scales[name], None).reshape(-1)
        return from_float8(value, scale if rows is None or len(scale) == 1 else scale[slice(*rows)])

    def _read(self, name: str, rows: tuple[int, int] | None) -> Tensor:
        reader, stored = self._source[name]
        if self._reading is not None and self._reading is not reader:
            self._reading.release()  # one shard at a time
        self._reading = reader
        return reader.read(stored, rows)

    def _take_scales(self) -> dict[str, str]:
        """Weights in float8 -> their scales, which are then no tensors of their own any more.

        ComfyUI's "scaled fp8" files call them scale_weight, others weight_scale. Scales of inputs are for
        products in float8, which nobody does here.
        """
        scales = {}
        for name in [n for n in self.tensors if n.endswith(".weight") and self.tensors[n].dtype in FLOAT8]:
            layer = name.removesuffix(".weight")
            found = [layer + end for end in (packing.SCALE, ".scale_weight") if layer + end in self.tensors]
            for left in (*found, f"{layer}.scale_input", f"{layer}.input_scale"):
                info = self.tensors.pop(left, None)
                rows = self.tensors[name].shape[:1]
                if info and left in found[:1] and math.prod(info.shape) not in (1, *rows):
                    raise CheckpointError(
                        f"{self.description}: {left} {info.shape} has no scale for each row"
                    )
            if found:
                scales[name] = found[0]
        self.tensors.pop("scaled_fp8", None)  # a mark that holds nothing
        return scales

    @property
    def in_float8(self) -> bool:
        """Whether weights are stored in float8."""
        return any(info.dtype in FLOAT8 for info in self.tensors.values())

    def text(self, name: str) -> str | None:
        """The small file `name` that lies beside the weights, or was packed with them."""
        text = self.metadata.get(packing.TEXT + name)
        file = (self.path if self.path.is_dir() else self.path.parent) / name
        if text is None and packing.FORMAT not in self.metadata and file.is_file():
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise CheckpointError(f"{file} cannot be read ({error})") from error
            refuse_impostor(file, text[:512].encode())
        if text is not None:
            self.used_texts[name] = text
        return text

    def packed_tokenizer(self) -> Checkpoint | None:
        """The image tokenizer that was packed with the weights, as a checkpoint of its own."""
        if not self._packed:
            return None
        inner = object.__new__(Checkpoint)
        inner.__dict__ |= vars(self)
        inner.tensors = self._packed
        inner._source = {name: self._source[packing.TOKENIZER + name] for name in self._packed}
        inner._packed, inner._scales, inner.used = {}, {}, {}
        metadata = _json_object(self.path, self.metadata.get(packing.TOKENIZER_METADATA, "{}"))
        inner.metadata = {key: str(value) for key, value in metadata.items()}
        config = self.metadata.get(packing.TOKENIZER_CONFIG)
        inner.config = None if config is None else _json_object(self.path, config)
        return inner

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
    readers = {file.name: open_weight_file(file) for file in files}
    lost = [f"{name} in {file}" for name, file in promised.items() if name not in readers[file].tensors]
    if lost:
        raise CheckpointError(f"{path.name}: tensors named by the index are not there: {', '.join(lost[:3])}")
    checkpoint = Checkpoint(path, readers, None)
    packed, config = checkpoint.metadata.get(packing.CONFIG), files[0].parent / "config.json"
    if packed is not None:
        checkpoint.config = _json_object(path, packed)
    elif packing.FORMAT not in checkpoint.metadata and config.is_file():
        checkpoint.config = _read_json(config)
    return checkpoint


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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror})") from error
    refuse_impostor(path, data[:512])
    return _json_object(path, data)


def _json_object(path: Path, text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is damaged: it is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path.name}: a JSON object was expected, it holds a {type(value).__name__}")
    return value
