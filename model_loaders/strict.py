"""Strict loading: each tensor of the file has its place in the module and the reverse, or nothing loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .checkpoint import Checkpoint
from .errors import CheckpointError
from .float8 import stored_in_float8, to_float8


@dataclass(frozen=True)
class Part:
    """A tensor of the file on its way into a parameter.

    `rows` are the only rows (first, one past the last) that are read. `change` gives what was read another
    order or shape by views, indexing and repeating; it is tried on the meta device first, to learn the shape.
    """

    name: str
    rows: tuple[int, int] | None = None
    change: Callable[[Tensor], Tensor] | None = None

    def shape(self, checkpoint: Checkpoint) -> tuple[int, ...] | None:
        """Shape of what `read` gives, None where the tensor of the file does not suit."""
        stored = checkpoint.tensors[self.name].shape
        if self.rows is not None:
            first, stop = self.rows
            if not stored or not 0 <= first < stop <= stored[0]:
                return None
            stored = (stop - first, *stored[1:])
        if self.change is None:
            return stored
        try:
            return tuple(self.change(torch.empty(stored, device="meta")).shape)
        except (RuntimeError, ValueError, IndexError, ZeroDivisionError):
            return None

    def read(self, checkpoint: Checkpoint) -> Tensor:
        tensor = checkpoint.read(self.name, self.rows)
        return tensor if self.change is None else self.change(tensor)


Source = str | Part | Sequence[str | Part]  # a tensor of the file, or several stacked by the first dimension


def assign(
    module: nn.Module,
    checkpoint: Checkpoint,
    names: Mapping[str, Source] | None = None,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    ignore: Callable[[str], bool] = lambda name: False,
    keep_float32: Callable[[str], bool] = lambda name: False,
) -> None:
    """Fill a module that was built on the meta device with the tensors of `checkpoint`.

    `names` says which tensor of the file each name of `module.state_dict()` takes; without it they are the
    same. `ignore` tells tensors of the file that have no place in the module, `keep_float32` names of the
    module that are not cast to `dtype`. Everything is compared before the first tensor is read; then they are
    read in file order, one at a time, so that only one of them is ever in memory twice. Layers that store
    their weight in float8 get it so, with its scales. On the meta device nothing is read.
    """
    narrow = {f"{path}.weight": f"{path}.scale" for path, m in module.named_modules() if stored_in_float8(m)}
    scales = set(narrow.values())
    wanted = {name: value for name, value in module.state_dict().items() if name not in scales}
    names = {name: name for name in wanted} if names is None else names
    sources = {name: _parts(source) for name, source in names.items()}
    _compare(wanted, sources, checkpoint, ignore)
    checkpoint.used |= {part.name: name in narrow for name, parts in sources.items() for part in parts}
    if torch.device(device).type == "meta":
        return
    # All places first: what is read in between and let go would leave holes among them.
    filled: dict[str, Tensor] = {}
    for name, parts in sources.items():
        shape, kind = wanted[name].shape, checkpoint.tensors[parts[0].name].dtype
        cast = (torch.float32 if keep_float32(name) else dtype) if kind.is_floating_point else kind
        if name in narrow:
            cast = torch.float8_e4m3fn
            filled[narrow[name]] = torch.empty(shape[:1], dtype=torch.float32, device=device)
        filled[name] = torch.empty(shape, dtype=cast, device=device)
    order = {name: place for place, name in enumerate(checkpoint.tensors)}
    places = [(order[part.name], name, i) for name, parts in sources.items() for i, part in enumerate(parts)]
    for _, name, i in sorted(places):
        parts, into = sources[name], filled[name]
        read = parts[i].read(checkpoint)
        first = sum(part.shape(checkpoint)[0] for part in parts[:i])
        rows = slice(first, first + len(read)) if into.ndim else ...
        if name in narrow:
            if not torch.isfinite(read).all():
                raise CheckpointError(
                    f"{checkpoint.description}: {parts[i].name} holds values that are not numbers"
                )
            read, filled[narrow[name]][rows] = to_float8(read)
        # A copy even where nothing changes: the file may be overwritten or removed while the model lives.
        into[rows].copy_(read)
    for name, value in filled.items():
        _replace(module, name, value)


def _parts(source: Source) -> tuple[Part, ...]:
    listed = (source,) if isinstance(source, str | Part) else source
    return tuple(Part(part) if isinstance(part, str) else part for part in listed)


def _compare(
    wanted: Mapping[str, Tensor],
    sources: Mapping[str, tuple[Part, ...]],
    checkpoint: Checkpoint,
    ignore: Callable[[str], bool],
) -> None:
    """One error that names the file and the first few names, or nothing."""
    used = {part.name for parts in sources.values() for part in parts}
    missing = [part for part in sorted(used) if part not in checkpoint]
    missing += [name for name in wanted if name not in sources]
    unexpected = [name for name in checkpoint.tensors if name not in used and not ignore(name)]
    wrong, whole_numbers = [], []
    for name, parts in sources.items():
        if not all(part.name in checkpoint for part in parts):
            continue
        if wanted[name].is_floating_point():
            stored = [(part.name, checkpoint.tensors[part.name].dtype) for part in parts]
            whole_numbers += [f"{part} is {kind}" for part, kind in stored if not kind.is_floating_point]
        expected = tuple(wanted[name].shape)
        if _stacked_shape([part.shape(checkpoint) for part in parts]) != expected:
            stored = " + ".join(str(checkpoint.tensors[part.name].shape) for part in parts)
            wrong.append(f"{' + '.join(part.name for part in parts)} is {stored}, expected {expected}")
    problems = [
        f"{len(found)} {what}: {', '.join(found[:3])}{', …' if len(found) > 3 else ''}"
        for found, what in (
            (missing, "tensors are missing"),
            (unexpected, "tensors are not known"),
            (wrong, "tensors have another shape"),
            (whole_numbers, "tensors hold no fractions (compressed in a way that is not known here?)"),
        )
        if found
    ]
    if problems:
        fault = "; ".join(problems)
        raise CheckpointError(f"{checkpoint.description} does not fit the model that it looks like: {fault}")


def _stacked_shape(shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    """Shape of the parts stacked along the first dimension, None where they do not fit together."""
    if len(shapes) == 1:
        return shapes[0]
    if not all(shapes) or len({shape[1:] for shape in shapes}) > 1:
        return None
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _replace(module: nn.Module, name: str, value: Tensor) -> None:
    """Put a real tensor in the place of the one on the meta device."""
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    if leaf in owner._buffers:
        owner._buffers[leaf] = value
    else:
        owner.register_parameter(leaf, nn.Parameter(value, requires_grad=False))
