"""What goes wrong, told in one sentence under the name of the node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

PACKAGE = "Jacobi AR"


class NodeError(ValueError):
    """An error that a person can act on; starts with the package and the node."""

    def __init__(self, node: str, sentence: str) -> None:
        super().__init__(f"{PACKAGE} – {node}: {sentence}")


class NodeMemoryError(NodeError, torch.cuda.OutOfMemoryError):
    """Out of memory; still of the type at which ComfyUI unloads every model."""


@contextmanager
def explained(node: str, memory_advice: str = "") -> Iterator[None]:
    """Gives the errors of this package, and running out of memory, the node's name; lets the rest pass.

    Errors of the loaders and of the decoding core are ValueErrors (a missing Python package an ImportError)
    whose text already says what was found and what to do. ComfyUI's own interruption is none of these and
    travels on.
    """
    try:
        yield
    except NodeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        raise NodeError(node, str(error) or type(error).__name__) from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        sentence = f"out of memory ({first_line(error)}). {memory_advice}".strip()
        raise NodeMemoryError(node, sentence) from error


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA and XPU raise a type of their own; the CPU allocator and MPS a plain RuntimeError that says so."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text


def first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
