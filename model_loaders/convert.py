"""Any checkpoint that loads, as one .safetensors file that loads alone.

Tensors keep their names (see `packing`), so that each family is converted by its own loader: a dry run of it
says which tensors it takes. In bfloat16 a tensor becomes what loading would have made of it; in float8 the
layers of the transformer become what loading with float8 weights would have made of them, and the rest
bfloat16. The image tokenizer stays as it is stored. A separate text encoder is not included.
"""

from __future__ import annotations

import copy
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from . import packing
from .checkpoint import Checkpoint, open_checkpoint
from .errors import CheckpointError
from .float8 import float8_operations, to_float8
from .image_model import ImageModel
from .load import load_opened
from .load_tokenizer import load_opened_tokenizer
from .weight_file import DTYPES, TensorInfo

CODES = {dtype: code for code, dtype in DTYPES.items()}
OPERATIONS = float8_operations(torch.nn)


@dataclass(frozen=True)
class Piece:
    """Tensors that are made together: one, or a weight in float8 and its scales."""

    tensors: dict[str, TensorInfo]  # name in the new file -> what it will be
    make: Callable[[], tuple[Tensor, ...]]

    @property
    def bytes(self) -> int:
        return sum(size(info) for info in self.tensors.values())


@dataclass(frozen=True)
class Conversion:
    """All that a new file will hold; nothing of it has been read yet."""

    model: ImageModel
    pieces: list[Piece]
    metadata: dict[str, str]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


def plan_conversion(
    path: str | os.PathLike[str], tokenizer: str | os.PathLike[str] | None, *, float8: bool
) -> Conversion:
    """What converting the model in `path` gives, with the image tokenizer in `tokenizer` (which may be the
    same path, or None for none). CheckpointError where either does not load."""
    checkpoint = open_checkpoint(path)
    model = dry_run(checkpoint)
    metadata = {k: v for k, v in checkpoint.metadata.items() if not k.startswith("jacobi_ar.")}
    metadata |= {
        packing.FORMAT: packing.VERSION,
        packing.FAMILY: model.family,
        packing.GRIDS: ", ".join(f"{grid.rows}x{grid.cols}" for grid in model.grids[:20]),
    }
    if checkpoint.config is not None:
        metadata[packing.CONFIG] = json.dumps(checkpoint.config)
    metadata |= {packing.TEXT + name: text for name, text in checkpoint.used_texts.items()}
    taken = dict(checkpoint.used)
    kept: dict[str, tuple[Checkpoint, str]] = {}
    if tokenizer is not None:
        kept, more = tokenizer_tensors(checkpoint, taken, Path(tokenizer))
        metadata |= more
    pieces = [
        float8_piece(checkpoint, name) if float8 and taken[name] else bfloat16_piece(checkpoint, name)
        for name in checkpoint.tensors
        if name in taken
    ]
    pieces += [stored_piece(source, name, new) for new, (source, name) in kept.items()]
    check_alone(checkpoint, {*taken, *kept}, model)
    return Conversion(model, pieces, metadata)


def dry_run(checkpoint: Checkpoint) -> ImageModel:
    return load_opened(checkpoint, device="meta", dtype=torch.bfloat16, operations=OPERATIONS)


def tokenizer_tensors(
    checkpoint: Checkpoint, taken: Mapping[str, bool], path: Path
) -> tuple[dict[str, tuple[Checkpoint, str]], dict[str, str]]:
    """Tensors of the image tokenizer, new name -> where from; and its metadata. One that lies among the
    model's own tensors stays there: families are told apart by that too."""
    source = checkpoint if path == checkpoint.path else open_checkpoint(path)
    packed = source.packed_tokenizer()
    source = packed or source
    load_opened_tokenizer(source, device="meta")
    if source is checkpoint:
        return {name: (source, name) for name in source.used if name not in taken}, {}
    metadata = {k: v for k, v in source.metadata.items() if not k.startswith("jacobi_ar.")}
    more = {packing.TOKENIZER_METADATA: json.dumps(metadata)}
    if source.config is not None:
        more[packing.TOKENIZER_CONFIG] = json.dumps(source.config)
    return {packing.TOKENIZER + name: (source, name) for name in source.used}, more


def check_alone(checkpoint: Checkpoint, names: set[str], model: ImageModel) -> None:
    """The tensors that will be in the new file are enough to know the model by."""
    alone = copy.copy(checkpoint)
    alone.tensors = {name: info for name, info in checkpoint.tensors.items() if name in names}
    alone.used, alone.used_texts = {}, {}
    found = dry_run(alone)
    if (found.family, found.name) != (model.family, model.name):
        raise CheckpointError(
            f"{checkpoint.description} cannot be converted: without what is left out, {model.name} would be "
            f"taken for {found.name}"
        )


def bfloat16_piece(checkpoint: Checkpoint, name: str) -> Piece:
    info = checkpoint.tensors[name]
    dtype = torch.bfloat16 if info.dtype.is_floating_point else info.dtype
    return Piece({name: TensorInfo(info.shape, dtype)}, lambda: (checkpoint.read(name).to(dtype),))


def stored_piece(checkpoint: Checkpoint, name: str, new: str) -> Piece:
    """As it is; float8 widens, as it does for everybody who reads it."""
    info = checkpoint.tensors[name]
    dtype = torch.float32 if info.dtype.itemsize == 1 and info.dtype.is_floating_point else info.dtype
    return Piece({new: TensorInfo(info.shape, dtype)}, lambda: (checkpoint.read(name).to(dtype),))


def float8_piece(checkpoint: Checkpoint, name: str) -> Piece:
    def make() -> tuple[Tensor, Tensor]:
        weight = checkpoint.read(name)
        if not torch.isfinite(weight).all():
            raise CheckpointError(f"{checkpoint.description}: {name} holds values that are not numbers")
        narrow, scale = to_float8(weight)
        return narrow, scale[:, None]

    shape = checkpoint.shape(name, 2)
    scale = name.removesuffix(".weight") + packing.SCALE
    narrow = TensorInfo(shape, torch.float8_e4m3fn)
    return Piece({name: narrow, scale: TensorInfo((shape[0], 1), torch.float32)}, make)


def write(conversion: Conversion, target: Path, *, overwrite: bool = False) -> Iterator[int]:
    """Write the file; yields the bytes written so far after each tensor, of `conversion.bytes`.

    Appears under its name when it is complete. A generator that is closed early leaves nothing behind.
    """
    if target.exists() and not overwrite:
        raise CheckpointError(f"{target} exists already: choose another name, or allow overwriting")
    target.parent.mkdir(parents=True, exist_ok=True)
    head = header(conversion)
    needed, free = len(head) + conversion.bytes, shutil.disk_usage(target.parent).free
    if needed > free:
        raise CheckpointError(
            f"{target.name} needs {needed / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB are free in "
            f"{target.parent}"
        )
    partial = target.with_name(target.name + ".partial")
    done = 0
    try:
        with partial.open("wb") as file:
            file.write(head)
            for piece in conversion.pieces:
                for tensor, (name, info) in zip(piece.make(), piece.tensors.items(), strict=True):
                    if (tuple(tensor.shape), tensor.dtype) != (info.shape, info.dtype):
                        raise CheckpointError(f"{name} is not as it was; the file changed meanwhile")
                    file.write(memoryview(tensor.contiguous().reshape(-1).view(torch.uint8).numpy()))
                done += piece.bytes
                yield done
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def header(conversion: Conversion) -> bytes:
    """Length and JSON of the safetensors format, padded to whole eights."""
    entries: dict[str, object] = {"__metadata__": conversion.metadata}
    offset = 0
    for piece in conversion.pieces:
        for name, info in piece.tensors.items():
            end = offset + size(info)
            entries[name] = {
                "dtype": CODES[info.dtype],
                "shape": list(info.shape),
                "data_offsets": [offset, end],
            }
            offset = end
    text = json.dumps(entries, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def size(info: TensorInfo) -> int:
    return math.prod(info.shape) * info.dtype.itemsize
