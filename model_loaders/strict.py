"""Strict loading: each tensor of the file has its place in the module and the reverse, or nothing loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from .checkpoint import Checkpoint
from .errors import CheckpointError

Source = str | Sequence[str]  # a tensor of the file, or several to be stacked along the first dimension


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
    read in file order, one at a time, so that only one of them is ever in memory twice.
    """
    wanted = module.state_dict()
    names = {name: name for name in wanted} if names is None else names
    sources = {name: (parts,) if isinstance(parts, str) else tuple(parts) for name, parts in names.items()}
    _compare(wanted, sources, checkpoint, ignore)
    order = {name: place for place, name in enumerate(checkpoint.tensors)}
    for name in sorted(sources, key=lambda name: order[sources[name][0]]):
        parts = [checkpoint.read(part) for part in sources[name]]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts)
        cast = (torch.float32 if keep_float32(name) else dtype) if whole.is_floating_point() else whole.dtype
        # A copy even where nothing changes: the file may be overwritten or removed while the model lives.
        _replace(module, name, whole.to(device=device, dtype=cast, copy=True).contiguous())


def _compare(
    wanted: Mapping[str, Tensor],
    sources: Mapping[str, tuple[str, ...]],
    checkpoint: Checkpoint,
    ignore: Callable[[str], bool],
) -> None:
    """One error that names the file and the first few names, or nothing."""
    used = {part for parts in sources.values() for part in parts}
    missing = [part for part in sorted(used) if part not in checkpoint]
    missing += [name for name in wanted if name not in sources]
    unexpected = [name for name in checkpoint.tensors if name not in used and not ignore(name)]
    wrong = []
    for name, parts in sources.items():
        shapes = [checkpoint.tensors[part].shape for part in parts if part in checkpoint]
        expected = tuple(wanted[name].shape)
        if len(shapes) == len(parts) and _stacked_shape(shapes) != expected:
            wrong.append(f"{' + '.join(parts)} is {' + '.join(map(str, shapes))}, expected {expected}")
    problems = [
        f"{len(found)} {what}: {', '.join(found[:3])}{', …' if len(found) > 3 else ''}"
        for found, what in (
            (missing, "tensors are missing"),
            (unexpected, "tensors are not known"),
            (wrong, "tensors have another shape"),
        )
        if found
    ]
    if problems:
        fault = "; ".join(problems)
        raise CheckpointError(f"{checkpoint.description} does not fit the model that it looks like: {fault}")


def _stacked_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
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
