"""Pictures of the nodes for their help pages: each after a real run, photographed in ComfyUI's page."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from .browser import how_to_get_chromium, launch, open_comfyui, run_by_click
from .comfy_server import ROOT
from .environment import say
from .help_pages import DOCS, Classes, ours
from .problem import Problem

WORKFLOWS = ROOT / "workflows"
PICTURES = DOCS / "pictures"
MOST_BYTES = 60_000
MARGIN, ABOVE = 10, 50  # around a node; of its title bar and the badge on it, above its position
LEFT, TOP = 420, 220  # of the node in the window, clear of the page's bars
# Puts the node of a class at a fixed place, at scale 1, and tells its size.
SHOW = """type => {
    const node = window.app.graph._nodes.find(node => node.type === type), canvas = window.app.canvas;
    canvas.ds.scale = 1;
    canvas.ds.offset = [LEFT - node.pos[0], TOP - node.pos[1]];
    canvas.deselectAllNodes?.();
    canvas.setDirty(true, true);
    return [...node.size];
}""".replace("LEFT", str(LEFT)).replace("TOP", str(TOP))
# Puts another decoder into the place of the quickstart's.
EXCHANGE = """type => {
    const graph = window.app.graph;
    const old = graph._nodes.find(node => node.type.startsWith('JacobiARDecoder'));
    const node = LiteGraph.createNode(type);
    node.pos = [...old.pos];
    graph.add(node);
    node.size = [Math.max(340, node.size[0]), Math.max(170, node.size[1])];
    node.connect(0, graph._nodes.find(node => node.type === 'JacobiARGenerate'), 'decoder');
    graph.remove(old);
}"""

# Puts a node alone on an empty canvas, for want of a workflow that has it.
ALONE = """type => {
    window.app.graph.clear();
    const node = LiteGraph.createNode(type);
    window.app.graph.add(node);
    node.size = [Math.max(340, node.size[0]), node.size[1]];
}"""


def take_pictures(url: str, classes: Classes) -> list[str]:
    """Writes a picture of every node; those that nothing shows at work are pictured without a run, and
    returned."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(parents=True, exist_ok=True)
    left = set(ours(classes))
    with sync_playwright() as driver:
        browser = launch(driver)
        if browser is None:
            raise Problem("no Chromium was found.", how_to_get_chromium())
        page = open_comfyui(browser, url, Comfy_Locale="en")
        for workflow in map(
            read, sorted(WORKFLOWS.glob("*.json"), key=lambda path: path.stem != "quickstart")
        ):
            here = sorted({node["type"] for node in workflow["nodes"]} & left)
            if here:
                open_and_run(page, workflow)
                for id_ in here:
                    photograph(page, id_)
                left -= set(here)
        decoders = sorted(id_ for id_ in left if id_.startswith("JacobiARDecoder"))
        for id_ in decoders:
            open_and_run(page, read(WORKFLOWS / "quickstart.json"), id_)
            photograph(page, id_)
        alone = sorted(left - set(decoders))
        for id_ in alone:
            page.evaluate(ALONE, id_)
            photograph(page, id_)
        browser.close()
    return alone


def open_and_run(page: Any, workflow: dict[str, Any], decoder: str | None = None) -> None:
    page.evaluate("workflow => window.app.loadGraphData(workflow)", workflow)
    if decoder is not None:
        page.evaluate(EXCHANGE, decoder)
    ended = run_by_click(page)
    if ended != "execution_success":
        raise Problem(f"a workflow did not run: {ended}", "see ComfyUI's log.")


def photograph(page: Any, id_: str) -> None:
    width, height = page.evaluate(SHOW, id_)
    page.mouse.move(5, 700)
    page.wait_for_timeout(700)  # pictures on the node load when it is first drawn
    width, height = page.evaluate(SHOW, id_)  # and may make it taller
    page.wait_for_timeout(200)
    clip = {
        "x": LEFT - MARGIN,
        "y": TOP - ABOVE - MARGIN,
        "width": width + 2 * MARGIN,
        "height": min(height, 900) + ABOVE + 2 * MARGIN,
    }
    save(Image.open(io.BytesIO(page.screenshot(clip=clip))), PICTURES / f"{id_}.jpg")


def save(picture: Image.Image, path: Path) -> None:
    """As a JPEG that stays below the limit, as good as that allows."""
    for quality in (90, 80, 70, 60, 50, 40):
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() < MOST_BYTES:
            break
    path.write_bytes(buffer.getvalue())
    say(f"  {path.name}: {picture.width} x {picture.height}, {buffer.tell() // 1024} kB")


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
