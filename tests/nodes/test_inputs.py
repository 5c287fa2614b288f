"""What ComfyUI lets through to a node is refused in a sentence, and every node asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jacobi_ar.decoding import sjd
from jacobi_ar.model_loaders.errors import PromptError
from jacobi_ar.model_loaders.families.llamagen import ClassModel
from jacobi_ar.nodes import inputs
from jacobi_ar.nodes.inputs import WIRES, check_text, check_widgets, check_wires, one_of, shown
from jacobi_ar.nodes.presets import PRESETS, Preset

ODD = [{"a": 1}, [1, 2], None, 3, "a string"]


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize("name", WIRES)
def test_only_what_its_node_makes_passes_for_a_wire(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be connected to .*; what came is "):
        check_wires(**{name: value})


def test_what_may_be_left_open_is_checked_only_where_it_is_connected() -> None:
    check_wires("trace", trace=None)
    with pytest.raises(ValueError, match="^trace must be connected to .*; what came is 3"):
        check_wires("trace", trace=3)


def test_a_decoder_and_a_preset_are_decoders() -> None:
    check_wires(decoder=sjd(3))
    check_wires(decoder=Preset(next(iter(PRESETS))))


@pytest.mark.parametrize("value", ODD, ids=str)
def test_a_choice_that_does_not_exist_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="^preset .* does not exist; choose one of: same picture"):
        one_of("preset", value, PRESETS)


WIDGETS = [
    SimpleNamespace(id="window", io_type="INT", min=1, max=255),
    SimpleNamespace(id="gap", io_type="FLOAT", min=0.0, max=1.0),
    SimpleNamespace(id="draw", io_type="COMBO", options=["fresh", "shared noise"]),
    SimpleNamespace(id="fixed_shapes", io_type="BOOLEAN"),
]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("window", value) for value in (0, 256, 2.5, "3", None, float("nan"))),
        *(("gap", value) for value in (-0.1, 1.1, "x", None, float("nan"))),
        *(("draw", value) for value in ("fast", None, 1)),
        *(("fixed_shapes", value) for value in ("no", None, 2)),
    ],
)
def test_what_no_widget_holds_is_refused(name: str, value: Any) -> None:
    """It may have come by wire."""
    with pytest.raises(ValueError, match=f"^{name} "):
        check_widgets(WIDGETS, **{name: value})


def test_what_widgets_hold_passes() -> None:
    check_widgets(WIDGETS, window=255, gap=1, draw="fresh", fixed_shapes=True)


@pytest.mark.parametrize("value", [None, 3, ["a"], "cut \ud83d apart"])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="^text (must be a text|holds half of a character .letter 5 of 11)"):
        check_text("text", value)
    check_text("text", "❤️ 红心")


def test_a_long_value_is_cut_short() -> None:
    assert len(shown({"a": "b" * 1000})) < 80


def test_a_class_of_thousands_of_digits_is_no_class() -> None:
    """Python itself refuses to read such a number, in words about its own limits."""
    with pytest.raises(PromptError, match="a number from 0 to 999"):
        ClassModel.encode_prompt(SimpleNamespace(name="c2i", classes=1000), "9" * 5000)


def executes() -> Iterator[tuple[str, ast.FunctionDef]]:
    """(class, its execute) of every node."""
    for file in sorted(Path(inputs.__file__).parent.glob("*.py")):
        for kind in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(kind, ast.ClassDef):
                yield from ((kind.name, f) for f in kind.body if getattr(f, "name", "") == "execute")


@pytest.mark.parametrize("execute", [pytest.param(f, id=name) for name, f in executes()])
def test_every_node_checks_its_wires_and_its_parts(execute: ast.FunctionDef) -> None:
    types = {argument.arg: ast.unparse(argument.annotation) for argument in execute.args.args[1:]}
    calls = {ast.unparse(call.func): call for call in ast.walk(execute) if isinstance(call, ast.Call)}
    wired = {name for name, type_ in types.items() if name in WIRES and type_ != "str"}
    if wired:
        assert {keyword.arg for keyword in calls["check_wires"].keywords} == wired
        first = len(execute.args.args) - len(execute.args.defaults)
        may_be_open = {argument.arg for argument in execute.args.args[first:]}
        assert {ast.literal_eval(name) for name in calls["check_wires"].args} == wired & may_be_open
    if set(types) & {"window", "pad_to_window", "context_threshold", "proportion", "growth"}:
        checked = calls["check_widgets"].keywords
        assert {keyword.arg for keyword in checked} == set(types) - wired
        assert all(keyword.arg == ast.unparse(keyword.value) for keyword in checked)
