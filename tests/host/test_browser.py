"""The package in ComfyUI's own page, driven in headless Chromium. Screenshots go to screenshots/ in the
development folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.tests.host.support import WORKFLOWS, Host, node_of, read_workflow
from jacobi_ar.tools.browser import LOADED, NEXT_END, RUN_BUTTON, SHOW_ALL, run_by_click
from jacobi_ar.tools.comfy_server import PACKAGE_FOLDER
from jacobi_ar.tools.commands import dev_folder
from jacobi_ar.tools.demo import GENERATE

pytestmark = [pytest.mark.host, pytest.mark.browser]

HAS_IMAGES = "id => (window.app.graph.getNodeById(id)?.imgs ?? []).some(image => image.naturalWidth > 0)"
SAVED_NAMES = "id => (window.app.nodeOutputs[id]?.images ?? []).map(image => image.filename)"
# Cells that are still open are grey in a preview.
WATCH_PREVIEWS = """id => {
    window.halfway = false;
    const node = window.app.graph.getNodeById(id);
    window.app.api.addEventListener('b_preview_with_metadata', () => window.halfway ||= node.progress > 0.4);
}"""
GREY_SHARE = """id => {
    const image = window.app.graph.getNodeById(id).imgs[0], canvas = document.createElement('canvas');
    canvas.width = image.naturalWidth, canvas.height = image.naturalHeight;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let grey = 0;
    for (let i = 0; i < bytes.length; i += 4)
        grey += [0, 1, 2].every(channel => Math.abs(bytes[i + channel] - 128) < 12);
    return 4 * grey / bytes.length;
}"""
# A new node of each class, as the page's search adds one: class -> width and height.
NEW_SIZES = """async types => {
    const graph = window.app.graph;
    graph.clear();
    const nodes = types.map(type => LiteGraph.createNode(type));
    nodes.forEach(node => graph.add(node));
    await new Promise(resolve => setTimeout(resolve, 300));
    return Object.fromEntries(nodes.map(node => [node.type, [...node.size]]));
}"""
LIST = "JacobiARListModels"
SET_WIDGET = """([id, name, value]) => {
    window.app.graph.getNodeById(id).widgets.find(widget => widget.name === name).value = value
}"""


def open_workflow(page: Any, workflow: dict[str, Any]) -> None:
    page.evaluate("workflow => window.app.loadGraphData(workflow)", workflow)
    missing = (
        "() => window.app.graph._nodes.filter(n => !LiteGraph.registered_node_types[n.type]).map(n => n.type)"
    )
    assert page.evaluate(missing) == []
    page.evaluate(SHOW_ALL)


def screenshot(page: Any, name: str) -> Path:
    path = dev_folder() / "screenshots" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    return path


def shows_picture(page: Any, node: int) -> None:
    """Waits until the page shows a loaded picture (a result or a live preview) on this node."""
    page.wait_for_function(HAS_IMAGES, arg=node, timeout=20_000)


def with_widget(workflow: dict[str, Any], class_type: str, slot: int, value: Any) -> dict[str, Any]:
    for node in workflow["nodes"]:
        if node["type"] == class_type:
            node["widgets_values"][slot] = value
    return workflow


def test_our_converter_agrees_with_the_page(page: Any, host: Host) -> None:
    for path in WORKFLOWS:
        open_workflow(page, read_workflow(path.stem))
        theirs = page.evaluate("async () => (await window.app.graphToPrompt()).output")
        ours = host.api(path.stem)
        assert {id_: (node["class_type"], node["inputs"]) for id_, node in ours.items()} == {
            id_: (node["class_type"], node["inputs"]) for id_, node in theirs.items()
        }, path.stem


def test_the_quickstart_runs_by_a_click_with_a_preview_and_a_picture(page: Any, host: Host) -> None:
    workflow = read_workflow("quickstart")
    generate, save = (int(node_of(host.api(), name)) for name in (GENERATE, "SaveImage"))
    open_workflow(page, workflow)
    assert run_by_click(page) == "execution_success"
    shows_picture(page, save)
    screenshot(page, "quickstart")

    # Again, longer, to catch the preview while it runs; the first picture is still on the other node.
    decoder = int(node_of(host.api(), "JacobiARDecoder"))
    page.evaluate(SET_WIDGET, [decoder, "window", 3])
    page.evaluate(SET_WIDGET, [generate, "batch_size", 9])
    page.evaluate(NEXT_END)
    page.evaluate(WATCH_PREVIEWS, generate)
    page.locator(RUN_BUTTON).first.click()
    page.wait_for_function("() => window.halfway")
    page.wait_for_timeout(50)  # a frame or two, to draw it
    screenshot(page, "quickstart-running")
    assert page.evaluate(GREY_SHARE, generate) > 0.02
    assert page.evaluate("() => window.runEnd") == "execution_success"
    page.wait_for_function("id => window.app.nodeOutputs[id].images.length === 9", arg=save)
    screenshot(page, "quickstart-batch")


def test_the_comparison_shows_both_pictures(page: Any, host: Host) -> None:
    open_workflow(page, read_workflow("same_picture"))
    assert run_by_click(page) == "execution_success"
    shown = [
        int(id_) for id_, node in host.api("same_picture").items() if node["class_type"] == "PreviewImage"
    ]
    assert len(shown) == 2
    for id_ in shown:
        shows_picture(page, id_)
        assert page.evaluate(SAVED_NAMES, id_)
    screenshot(page, "same-picture")


def test_the_template_address_opens_the_quickstart(page: Any, host: Host) -> None:
    """The address that `dev.py serve` prints, and the one behind the card in the template gallery."""
    page.goto(f"{host.url}/?template=quickstart&source={PACKAGE_FOLDER}")
    page.wait_for_function(LOADED)
    page.wait_for_function("() => window.app.graph._nodes.some(node => node.type === 'JacobiARGenerate')")
    types = page.evaluate("() => window.app.graph._nodes.map(node => node.type).sort()")
    assert types == sorted(node["type"] for node in read_workflow("quickstart")["nodes"])


def test_a_saved_picture_dropped_on_the_page_brings_its_workflow_back(page: Any, host: Host) -> None:
    workflow = read_workflow("quickstart")
    with_widget(workflow, GENERATE, 0, 23)
    with ThreadPoolExecutor(1) as elsewhere:  # the browser driver has an event loop in this thread
        run = elsewhere.submit(host.run, host.quickstart(seed=23), workflow=workflow).result()
    (image,) = run.images
    query = "&".join(f"{key}={image[key]}" for key in ("filename", "subfolder", "type"))
    page.evaluate("() => window.app.graph.clear()")
    page.evaluate(
        """async query => {
            const picture = await (await fetch('/view?' + query)).blob();
            await window.app.handleFile(new File([picture], 'picture.png', {type: 'image/png'}));
        }""",
        query,
    )
    page.wait_for_function("() => window.app.graph._nodes.some(node => node.type === 'JacobiARGenerate')")
    prompt = page.evaluate("async () => (await window.app.graphToPrompt()).output")
    assert prompt[node_of(prompt, GENERATE)]["inputs"]["seed"] == 23


def test_new_nodes_have_room_for_their_texts(page: Any, host: Host) -> None:
    sizes = page.evaluate(NEW_SIZES, list(host.ours))
    assert set(sizes) == set(host.ours)
    assert min(width for width, _ in sizes.values()) >= 360
    assert sizes[LIST] >= [600, 400] and sizes[GENERATE][1] >= 800
    assert page.evaluate(NEW_SIZES, ["SaveImage"])["SaveImage"][0] < 360  # other packages' nodes are theirs
    open_workflow(page, read_workflow("quickstart"))
    saved = {str(node["id"]): node["size"] for node in read_workflow("quickstart")["nodes"]}
    # Newer pages keep ids as text.
    now = page.evaluate("() => window.app.graph._nodes.map(node => [String(node.id), [...node.size]])")
    assert dict(now) == saved


def test_the_list_of_models_fills_its_node_and_is_no_setting(page: Any, host: Host) -> None:
    size = page.evaluate(NEW_SIZES, [LIST])[LIST]
    assert run_by_click(page) == "execution_success"
    shown = """() => {
        const node = window.app.graph._nodes[0], box = node.widgets.find(widget => widget.name === 'shown');
        return [box.element.value, box.element.clientHeight, [...node.size]];
    }"""
    page.evaluate(SHOW_ALL)
    page.wait_for_function("() => document.querySelector('.dom-widget textarea')?.clientHeight > 0")
    text, height, now = page.evaluate(shown)
    screenshot(page, "find-models")
    assert "models" in text and "image tokenizers" in text
    assert height > 300 and now == size
    saved = page.evaluate("() => window.app.graph.serialize().nodes[0].widgets_values ?? []")
    queued = page.evaluate("async () => Object.values((await window.app.graphToPrompt()).output)[0].inputs")
    assert saved == [] and queued == {}
