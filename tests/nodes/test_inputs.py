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
from jacobi_ar.nodes.inputs import WIRES, check_wires, known_parts, one_of, shown
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
    with pytest.raises(ValueError, match="^initialiser .*uniform, copy left"):
        known_parts(value)
    with pytest.raises(ValueError, match="^draw .*fresh, maximal coupling"):
        known_parts("uniform", value)
    known_parts("copy left", "shared noise")


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
    if wired := {name for name, type_ in types.items() if name in WIRES and type_ != "str"}:
        assert {keyword.arg for keyword in calls["check_wires"].keywords} == wired
        first = len(execute.args.args) - len(execute.args.defaults)
        may_be_open = {argument.arg for argument in execute.args.args[first:]}
        assert {ast.literal_eval(name) for name in calls["check_wires"].args} == wired & may_be_open
    if parts := set(types) & {"initialiser", "draw"}:
        assert {ast.unparse(argument) for argument in calls["known_parts"].args} == parts
