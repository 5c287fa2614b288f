"""Decoders written as text: `sjd(window=31, draw=maximal coupling)+sv(proportion=0.8)+vp`.

A constructor of `jacobi_ar.decoding` by its name, then what is put over it. Nothing is evaluated: names are
looked up, values are read by the type that the constructor declares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

from ... import decoding
from ...decoding import Decoder, DecodingError

_CONSTRUCTORS = (
    "autoregressive",
    "block_sjd",
    "greedy_jacobi",
    "gsd",
    "lantern",
    "pjd",
    "same_picture",
    "same_picture_denoising",
    "same_picture_rows",
    "same_picture_tree",
    "sjd",
    "sjd2",
    "sjd_tree",
    "zipar",
)
CONSTRUCTORS: dict[str, Callable[..., Decoder]] = {name: getattr(decoding, name) for name in _CONSTRUCTORS}
ADDITIONS: dict[str, Callable[..., Decoder]] = {
    "sv": decoding.with_semantics,
    "vp": decoding.with_prediction,
}
_PART = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*")


class SpecError(ValueError):
    """The text names no decoder."""


def decoder_of(spec: str) -> Decoder:
    """The decoder that `spec` names; SpecError where it names none."""
    decoder: Decoder | None = None
    for maker, values in _parts(spec):
        try:
            decoder = maker(**values) if decoder is None else maker(decoder, **values)
        except DecodingError as error:
            raise SpecError(f"{spec!r}: {error}") from error
    assert decoder is not None
    return decoder


def canonical(spec: str) -> str:
    """One writing of each decoder, for keys: what stands at its default is left out, the rest in the order
    of the constructor."""
    written = []
    for maker, values in _parts(spec):
        name = next(key for key, value in (CONSTRUCTORS | ADDITIONS).items() if value is maker)
        given = [
            f"{key}={str(values[key]).lower() if isinstance(values[key], bool) else values[key]}"
            for key, parameter in inspect.signature(maker).parameters.items()
            if key in values and values[key] != parameter.default
        ]
        written.append(name + (f"({', '.join(given)})" if given else ""))
    return "+".join(written)


def _parts(spec: str) -> list[tuple[Callable[..., Decoder], dict[str, Any]]]:
    parts = []
    for place, text in enumerate(spec.split("+")):
        known = ADDITIONS if place else CONSTRUCTORS
        found = _PART.fullmatch(text)
        if found is None:
            raise SpecError(f"{spec!r}: {text!r} is not of the form name(key=value, …)")
        name = found[1]
        if name not in known:
            raise SpecError(f"{spec!r}: no decoder part is called {name!r}; known here: {', '.join(known)}")
        parts.append((known[name], _values(spec, known[name], found[2] or "")))
    return parts


def _values(spec: str, maker: Callable[..., Decoder], text: str) -> dict[str, Any]:
    types = {key: kind for key, kind in get_type_hints(maker).items() if key not in ("decoder", "return")}
    values: dict[str, Any] = {}
    for pair in filter(str.strip, text.split(",")):
        key, equals, value = (piece.strip() for piece in pair.partition("="))
        if not equals or key not in types or key in values:
            raise SpecError(f"{spec!r}: {pair.strip()!r} should be one of {', '.join(types)} = a value, once")
        values[key] = _value(spec, key, value, types[key])
    return values


def _value(spec: str, key: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise SpecError(f"{spec!r}: {key} is true or false, not {text!r}")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError as error:
        raise SpecError(f"{spec!r}: {key} is a number ({kind.__name__}), not {text!r}") from error
