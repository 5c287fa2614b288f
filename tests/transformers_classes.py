"""Classes of the installed transformers, the reference of many tests: not every release has them all."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def from_transformers(*names: str, module: str = "transformers") -> tuple[Any, ...]:
    """The classes of these names. Where transformers is absent or older than one of them, the test that asks
    is skipped, and says why."""
    transformers = pytest.importorskip("transformers")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        found = None
    missing = [name for name in names if not hasattr(found, name)]
    if missing:
        pytest.skip(f"transformers {transformers.__version__} has no {', '.join(missing)}")
    return tuple(getattr(found, name) for name in names)


def image_tokens(encoded: Any) -> Any:
    """What `encode` of an image tokenizer's class found: transformers 4 gives it bare, or last in a tuple."""
    return encoded[-1] if isinstance(encoded, tuple) else getattr(encoded, "image_tokens", encoded)
