"""Help pages and translations, as a real ComfyUI serves them and its page shows them."""

from __future__ import annotations

import copy
import urllib.error
import urllib.request
from importlib.metadata import version
from typing import Any

import pytest
from jacobi_ar.tests.host.support import Host, read_workflow
from jacobi_ar.tools import client, help_pages
from jacobi_ar.tools.browser import open_comfyui
from jacobi_ar.tools.comfy_server import PACKAGE_FOLDER
from jacobi_ar.tools.commands import dev_folder
from jacobi_ar.tools.demo import GENERATE

pytestmark = pytest.mark.host

HELP = ".node-help-content"
OPEN_HELP = """type => {
    const node = window.app.graph._nodes.find(node => node.type === type);
    window.app.canvas.selectNode(node);
}"""


def fetched(host: Host, path: str) -> bytes:
    with urllib.request.urlopen(f"{host.url}/extensions/{PACKAGE_FOLDER}/docs/{path}", timeout=30) as answer:
        return answer.read()


def test_pages_and_locales_are_in_step_with_the_nodes(host: Host) -> None:
    assert not help_pages.out_of_step(host.classes)


def changed(classes: dict[str, Any], what: str) -> dict[str, Any]:
    """The classes after somebody worked on a node and forgot its page."""
    classes = copy.deepcopy(classes)
    inputs = classes[GENERATE]["input"]["required"]
    if what == "default":
        inputs["temperature"][1]["default"] = 0.9
    elif what == "range":
        inputs["top_p"][1]["min"] = 0.5
    elif what == "tooltip":
        inputs["seed"][1]["tooltip"] += " Really."
    elif what == "input":
        inputs["new"] = ["INT", {"default": 0, "min": 0, "max": 1, "tooltip": inputs["seed"][1]["tooltip"]}]
    elif what == "option":
        classes["JacobiARDecoderSJD"]["input"]["required"]["draw"][1]["options"].append("new")
    elif what == "node":
        classes["JacobiARNew"] = copy.deepcopy(classes[GENERATE])
    else:
        del classes["JacobiARDecoderZipAR"]
    return classes


@pytest.mark.parametrize("what", ["default", "range", "tooltip", "input", "option", "node", "no node"])
def test_a_node_that_changed_is_noticed(host: Host, what: str) -> None:
    known = set(help_pages.out_of_step(host.classes))
    assert set(help_pages.out_of_step(changed(host.classes, what))) - known


def test_the_server_serves_every_page_and_picture(host: Host) -> None:
    for path in [*help_pages.all_pages(), *(help_pages.DOCS / "pictures").iterdir()]:
        assert fetched(host, path.relative_to(help_pages.DOCS).as_posix()) == path.read_bytes()
    with pytest.raises(urllib.error.HTTPError):
        fetched(host, "../../pyproject.toml")


def test_the_server_serves_names_and_tooltips_in_both_languages(host: Host) -> None:
    served = client.get(host.url, "/i18n")
    for language in help_pages.LANGUAGES:
        nodes = {
            id_: entry
            for id_, entry in served[language]["nodeDefs"].items()
            if id_ in help_pages.ours(host.classes)
        }
        assert set(nodes) == set(host.ours)
    assert nodes[GENERATE]["display_name"] == "生成图像 token"
    assert served["zh"]["nodeCategories"]["decoders"] == "解码器"


def help_of(tab: Any, type_: str, name: str) -> str:
    """What the help panel shows of a node; also as a screenshot."""
    tab.evaluate("workflow => window.app.loadGraphData(workflow)", read_workflow("quickstart"))
    tab.evaluate(OPEN_HELP, type_)
    tab.locator('[data-testid="info-button"]').first.click()
    tab.wait_for_selector(f"{HELP} li")
    tab.wait_for_function(
        f"() => [...document.querySelectorAll('{HELP} img')].every(i => i.naturalWidth > 0)"
    )
    folder = dev_folder() / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=folder / f"{name}.png")
    return tab.locator(HELP).inner_text()


@pytest.mark.browser
def test_the_help_panel_shows_our_page(chromium: Any, host: Host) -> None:
    tab = open_comfyui(chromium, host.url, Comfy_Locale="en")
    text = help_of(tab, GENERATE, "help-en")
    assert "When to use it" in text and "0 to 2^64 - 1" in text and "batch_size" in text
    assert "<!--" not in text
    tab.close()


@pytest.mark.browser
def test_a_chinese_page_has_chinese_nodes_and_help(chromium: Any, host: Host) -> None:
    tab = open_comfyui(chromium, host.url, Comfy_Locale="zh")
    try:
        text = help_of(tab, GENERATE, "help-zh")
        assert "何时使用" in text and "引导强度" in text
        if version("comfyui-frontend-package").startswith("1.32."):
            pytest.skip("this page drops the names that packages give their nodes in other languages")
        node = f"window.app.graph._nodes.find(node => node.type === '{GENERATE}')"
        assert tab.evaluate(f"() => {node}.title") == "生成图像 token"
        labels = tab.evaluate(f"() => {node}.widgets.map(widget => widget.label ?? widget.name)")
        assert labels[:2] == ["种子", "生成后控制"] and "引导强度" in labels
        # Names that are shown are translated, those that are saved are not.
        assert tab.evaluate(f"() => {node}.widgets[0].name") == "seed"
    finally:
        client.post(host.url, "/settings", {"Comfy.Locale": "en"})
        tab.close()
