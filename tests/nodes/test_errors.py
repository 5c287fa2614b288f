"""Errors carry the node's name, and nothing is swallowed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from jacobi_ar.decoding import DecodingError
from jacobi_ar.model_loaders.errors import CheckpointError, GridError, PromptError
from jacobi_ar.nodes import errors as nodes_errors
from jacobi_ar.nodes.errors import NodeError, explained


class Interrupted(Exception):
    """Stands for ComfyUI's InterruptProcessingException, which derives from Exception too."""


OURS = [CheckpointError, PromptError, GridError, DecodingError, OSError, ImportError]


@pytest.mark.parametrize("kind", OURS)
def test_our_errors_get_the_name_of_the_node(kind: type[Exception]) -> None:
    with pytest.raises(NodeError, match="^Jacobi AR – Some Node: the reason$") as caught:
        with explained("Some Node"):
            raise kind("the reason")
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("kind", [Interrupted, KeyError, TypeError, AssertionError])
def test_everything_else_travels_on_untouched(kind: type[Exception]) -> None:
    error = kind("as it was")
    with pytest.raises(kind) as caught, explained("Some Node"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("MPS backend out of memory (MPS allocated: 17 GB)\nmore lines"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_running_out_of_memory_comes_with_advice(error: Exception) -> None:
    with pytest.raises(NodeError, match="out of memory .* Lower batch_size") as caught:
        with explained("Some Node", "Lower batch_size."):
            raise error
    assert "more lines" not in str(caught.value)
    assert isinstance(caught.value, torch.cuda.OutOfMemoryError)  # at which ComfyUI unloads its models


def test_advice_is_whole_sentences() -> None:
    """Two strings on two lines without parentheses are two statements, and the second is lost."""
    found = 0
    for file in Path(nodes_errors.__file__).parent.glob("*.py"):
        for line in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "MEMORY_ADVICE":
                found += 1
                assert ast.literal_eval(line.value).endswith("."), file.name
    assert found >= 3


def test_other_runtime_errors_are_no_memory_errors() -> None:
    with pytest.raises(RuntimeError, match="shape"), explained("Some Node", "Lower batch_size."):
        raise RuntimeError("shape mismatch")


def test_an_error_is_named_once() -> None:
    with pytest.raises(NodeError, match="^Jacobi AR – Inner: x$"), explained("Outer"):
        with explained("Inner"):
            raise ValueError("x")
