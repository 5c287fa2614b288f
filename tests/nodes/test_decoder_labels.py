"""What the decoder nodes say of themselves, read from their source: true labels, papers, promises."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from jacobi_ar import decoding

NODES = Path(__file__).resolve().parents[2] / "nodes"


def node_classes() -> dict[str, ast.ClassDef]:
    """Node id -> class."""
    found = {}
    for file in sorted(NODES.glob("*.py")):
        for part in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(part, ast.ClassDef) and "NAME" in names_in(part):
                found[part.name] = part
    return found


def names_in(part: ast.ClassDef) -> set[str]:
    return {target.id for line in part.body if isinstance(line, ast.Assign) for target in line.targets}


def labelled() -> list[tuple[str, str, str]]:
    """(node, the promise that its output's label tells, the constructor in `decoding` that makes it)."""
    rows = []
    for name, part in CLASSES.items():
        source = ast.unparse(part)
        label = re.search(r"decoder_output\('(.+?)'\)", source)
        if label:
            rows.append((name, label[1], re.search(r"(?:return |staticmethod\()decoding\.(\w+)", source)[1]))
    return rows


CLASSES = node_classes()
BY_PRESET = "JacobiARDecoderPreset"  # its decoder, and with it the promise, shows only at run


def test_ids_are_class_names_and_names_are_used_once() -> None:
    ids, shown = set(), []
    for name, part in CLASSES.items():
        source = ast.unparse(part)
        ids |= set(re.findall(r"node_id='(\w+)'", source))
        shown += re.findall(r"NAME = '(.+)'", source)
        assert f"node_id='{name}'" in source
    assert ids == set(CLASSES) and len(shown) == len(set(shown)) == len(ids)


def test_every_node_is_registered() -> None:
    source = (NODES / "__init__.py").read_text(encoding="utf-8")
    listed = source.split("NODES: list[type[io.ComfyNode]] = [")[1].split("]")[0]
    assert set(re.findall(r"JacobiAR\w+", listed)) == set(CLASSES)


def test_every_decoder_has_a_label() -> None:
    assert {node for node, _, _ in labelled()} == {
        name for name in CLASSES if name.startswith("JacobiARDecoder") and name != BY_PRESET
    }


@pytest.mark.parametrize(("node", "label", "constructor"), labelled(), ids=lambda value: value)
def test_the_label_of_a_decoder_is_its_promise(node: str, label: str, constructor: str) -> None:
    assert label.startswith(str(getattr(decoding, constructor)().promise))


@pytest.mark.parametrize("node", [name for name in CLASSES if re.match("JacobiAR(Decoder|Add)", name)])
def test_a_decoder_tells_its_promise_and_its_paper(node: str) -> None:
    text = ast.unparse(CLASSES[node])
    assert re.search(r"Promise:|SAME_PICTURE|SAME_DISTRIBUTION|APPROXIMATE|reference", text)
    if node not in {BY_PRESET, "JacobiARDecoderAutoregressive", "JacobiARDecoderSamePicture"}:
        assert re.search(r"arXiv|20\d\d", text)
