"""The shipped workflows, as far as their files tell: nodes that exist, links that meet, format 0.4."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / "workflows").glob("*.json"))
CORE = {"SaveImage", "PreviewImage", "PrimitiveInt", "SolidMask", "MaskComposite", "ImageScaleBy"}
OPTIONAL = 7  # shape of a socket that may stay open
TITLE_BAR = 30  # pixels above a node's position
NOTE = "MarkdownNote"  # the page's own: no server runs it, and no package brings it
RESEARCHERS_WORDS = ("logit", "official class", "argmax", "chi-square", "kl ", "prefill")
NODE_IDS = {
    found
    for file in (ROOT / "nodes").glob("*.py")
    for found in re.findall(r'node_id="(\w+)"', file.read_text(encoding="utf-8"))
}


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_ids_are_prefixed_and_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} >= {"quickstart.json", "same_picture.json"}
    assert NODE_IDS and all(re.fullmatch(r"JacobiAR[A-Z]\w+", name) for name in NODE_IDS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_node_exists_and_every_link_meets(path: Path) -> None:
    workflow = load(path)
    assert workflow["version"] == 0.4
    nodes = {node["id"]: node for node in workflow["nodes"]}
    assert {node["type"] for node in nodes.values()} <= NODE_IDS | CORE | {NOTE}
    assert all(node["mode"] == 0 for node in nodes.values())  # none muted or bypassed
    for number, source, output, destination, port, kind in workflow["links"]:
        out, into = nodes[source]["outputs"][output], nodes[destination]["inputs"][port]
        assert number in out["links"] and into["link"] == number and out["type"] == into["type"] == kind


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_socket_without_a_widget_is_connected(path: Path) -> None:
    for node in load(path)["nodes"]:
        for port in node["inputs"]:
            may_be_open = "widget" in port or port.get("shape") == OPTIONAL
            assert port["link"] is not None or may_be_open, f"{node['type']}.{port['name']}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_template_has_its_thumbnail_and_says_where_its_nodes_come_from(path: Path) -> None:
    assert path.with_suffix(".jpg").is_file()
    for node in load(path)["nodes"]:
        if node["type"] == NOTE:
            continue
        expected = "comfy-core" if node["type"] in CORE else "jacobi-ar"
        assert node["properties"]["cnr_id"] == expected


def overlapping(nodes: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Ids of nodes that lie on one another, their title bars included."""
    boxes = {
        node["id"]: (x, y - TITLE_BAR, x + node["size"][0], y + node["size"][1])
        for node in nodes
        for x, y in [node["pos"]]
    }
    return [
        (one, other)
        for (one, a), (other, b) in combinations(boxes.items(), 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_node_lies_on_another(path: Path) -> None:
    nodes = load(path)["nodes"]
    assert overlapping(nodes) == []
    first, second = nodes[0], nodes[1]
    assert overlapping([first, {**second, "pos": first["pos"]}]) == [(first["id"], second["id"])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_template_has_one_note_under_a_title(path: Path) -> None:
    notes = [node for node in load(path)["nodes"] if node["type"] == NOTE]
    assert len(notes) == 1 and notes[0]["title"].startswith("About this ")
    text = notes[0]["widgets_values"][0]
    assert text.startswith("## ") and [word for word in RESEARCHERS_WORDS if word in text.lower()] == []


def test_every_decoder_of_a_paper_has_a_template() -> None:
    explained = {node["type"] for path in WORKFLOWS for node in load(path)["nodes"]}
    older = {f"JacobiARDecoder{name}" for name in ("Autoregressive", "Greedy", "SamePicture")}
    assert {name for name in NODE_IDS if re.match("JacobiAR(Decoder|Add)", name)} - older <= explained


def test_the_quickstart_is_six_nodes_beside_its_note() -> None:
    types = [
        node["type"] for node in load(ROOT / "workflows" / "quickstart.json")["nodes"] if node["type"] != NOTE
    ]
    assert len(types) == 6 and types.count("JacobiARDecoderSamePicture") == 1


def test_both_pictures_of_the_comparison_have_one_seed_and_one_model() -> None:
    workflow = load(ROOT / "workflows" / "same_picture.json")
    source = {link[0]: (link[1], link[2]) for link in workflow["links"]}
    generates = [node for node in workflow["nodes"] if node["type"] == "JacobiARGenerate"]
    assert len(generates) == 2
    for name in ("model", "prompt", "seed"):
        ports = [port for node in generates for port in node["inputs"] if port["name"] == name]
        feeds = {source[port["link"]] for port in ports}
        assert len(feeds) == 1, name
    assert [node["widgets_values"] for node in generates][0] == generates[1]["widgets_values"]
