"""Workflows of earlier releases, frozen as they were saved, still mean the same.

`golden_workflows/<version>/` holds the templates of a release and, in prompts.json, what each meant then:
every node's class and its inputs by name. Widgets are saved by position, so a widget put in the middle or
left out would shift the values of all behind it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.tests.host.support import Host
from jacobi_ar.tools.browser import open_comfyui
from jacobi_ar.tools.comfy_server import ROOT
from jacobi_ar.tools.workflow_api import Prompt, to_api

pytestmark = pytest.mark.host

RELEASES = sorted(path for path in (ROOT / "tests" / "golden_workflows").iterdir() if path.is_dir())
PROMPTS = "prompts.json"
FROZEN = [path for folder in RELEASES for path in sorted(folder.glob("*.json")) if path.name != PROMPTS]
RUN_TOO = [path for path in FROZEN if path.stem in {"quickstart", "sjd_vp"}]


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def meaning(prompt: Prompt) -> Prompt:
    return {id_: {key: node[key] for key in ("class_type", "inputs")} for id_, node in prompt.items()}


def meant_then(path: Path) -> Prompt:
    return read(path.parent / PROMPTS)[path.stem]


@pytest.mark.parametrize("folder", RELEASES, ids=lambda path: path.name)
def test_every_frozen_workflow_has_its_meaning_beside_it(host: Host, folder: Path, test_folder: Path) -> None:
    here = [path for path in FROZEN if path.parent == folder]
    if sorted(path.stem for path in here) != sorted(read(folder / PROMPTS)):
        proposal = test_folder / PROMPTS
        prompts = {path.stem: meaning(to_api(read(path), host.classes)) for path in here}
        proposal.write_text(json.dumps(prompts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"workflows were added: look at {proposal}, copy it to {folder} and commit it")


@pytest.mark.parametrize("path", FROZEN, ids=name)
def test_values_saved_by_position_go_to_the_same_inputs(host: Host, path: Path) -> None:
    assert meaning(to_api(read(path), host.classes)) == meant_then(path)


def test_a_widget_in_the_middle_would_be_noticed(host: Host) -> None:
    classes = copy.deepcopy(host.classes)
    info = classes["JacobiARGenerate"]
    order = info["input_order"]["required"]
    order.insert(order.index("temperature"), "new")
    info["input"]["required"]["new"] = ["FLOAT", {"default": 0.0}]
    path = next(path for path in FROZEN if path.stem == "quickstart")
    assert meaning(to_api(read(path), classes)) != meant_then(path)


@pytest.mark.parametrize("path", RUN_TOO, ids=name)
def test_an_old_workflow_runs(host: Host, path: Path) -> None:
    workflow = read(path)
    run = host.run(to_api(workflow, host.classes), workflow=workflow)
    assert run.status == "success" and run.images, run.error


@pytest.mark.browser
def test_the_page_reads_old_workflows_as_they_were_meant(chromium: Any, host: Host) -> None:
    """Widgets that were appended since then may be there too, at their defaults."""
    page = open_comfyui(chromium, host.url)
    for path in FROZEN:
        page.evaluate("workflow => window.app.loadGraphData(workflow)", read(path))
        now = page.evaluate("async () => (await window.app.graphToPrompt()).output")
        for id_, node in meant_then(path).items():
            assert now[id_]["class_type"] == node["class_type"], name(path)
            assert now[id_]["inputs"] | node["inputs"] == now[id_]["inputs"], (name(path), node["class_type"])
    page.close()
