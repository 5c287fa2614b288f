"""What comes into a node, checked where ComfyUI does not.

Over its API any value can stand for a wire or a choice, and what arrives by wire at a widget is held against
no range.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from ..decoding import Decoder, Trace
from ..model_loaders.image_transformer import Prompt
from .presets import Preset
from .values import ModelValue, TokenGridValue, TokenizerValue

TOKEN_SOURCE = "a node that gives tokens, such as Generate Image Tokens"
# Name of a wired input -> what travels on the wire, and where it comes from.
WIRES: dict[str, tuple[tuple[type, ...], str]] = {
    "model": ((ModelValue,), "the model output of Load AR Image Model"),
    "tokenizer": ((TokenizerValue,), "the tokenizer output of Load AR Image Model"),
    "prompt": ((Prompt,), "Encode AR Prompt"),
    "decoder": ((Decoder, Preset), "a decoder node"),
    "tokens": ((TokenGridValue,), TOKEN_SOURCE),
    "other_tokens": ((TokenGridValue,), TOKEN_SOURCE),
    "trace": ((Trace,), "the trace output of Generate Image Tokens"),
    "fixed_tokens": ((TokenGridValue,), "Keep Rows or Token Mask"),
    "image": ((Tensor,), "a node that gives an image"),
    "mask": ((Tensor,), "a node that gives a mask"),
    "pictures": ((Tensor,), "Decode Image Tokens"),
}


def check_wires(*optional: str, **values: object) -> None:
    """Refuses what did not come from the node that makes it; by input name. optional: names of those that may
    be left unconnected."""
    for name, value in values.items():
        if value is not None or name not in optional:
            check_wire(name, value, name)


def check_wire(name: str, value: object, kind: str) -> None:
    """The same for one input, which takes what inputs called `kind` take."""
    kinds, source = WIRES[kind]
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be connected to {source}; what came is {shown(value)}.")


def one_of(field: str, value: object, options: Iterable[str]) -> None:
    """Refuses what is not on offer: older ComfyUI lets anything through a combo."""
    options = list(options)
    if value not in options:
        raise ValueError(f"{field} {shown(value)} does not exist; choose one of: {', '.join(options)}.")


def check_widgets(inputs: Iterable[Any], **values: object) -> None:
    """Refuses what the widgets of a node cannot hold. inputs: those of its schema; values: by their ids."""
    widgets = {widget.id: widget for widget in inputs}
    for name, value in values.items():
        widget = widgets[name]
        kind = str(widget.io_type)
        if kind == "COMBO":
            one_of(name, value, widget.options)
        elif kind == "BOOLEAN":
            whole_number(name, value, 0, 1, " (off or on)")
        else:
            {"INT": whole_number, "FLOAT": number}[kind](name, value, widget.min, widget.max)


def check_text(field: str, value: object) -> None:
    """Refuses what is no text, or half of a character, as a text that was cut apart may hold: no file and no
    text tokenizer takes that."""
    if not isinstance(value, str):
        raise ValueError(f"{field} must be a text, got {shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{field} holds half of a character (letter {error.start + 1} of {len(value)}), most likely of "
            "an emoji that was cut apart. Delete it."
        ) from error


def whole_number(field: str, value: object, low: int, high: int, meaning: str = "") -> None:
    """Refuses what is no whole number from `low` to `high`; `meaning` says what a special one means."""
    if not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{field} must be a whole number from {low} to {high}{meaning}, got {shown(value)}.")


def number(field: str, value: object, low: float, high: float, meaning: str = "") -> None:
    """The same for any number; NaN is none."""
    if not isinstance(value, Real) or not low <= value <= high:
        raise ValueError(f"{field} must be a number from {low:g} to {high:g}{meaning}, got {shown(value)}.")


def shown(value: object, limit: int = 60) -> str:
    """A value as far as a sentence has room for it."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= limit else f"{text[:limit]} …"
