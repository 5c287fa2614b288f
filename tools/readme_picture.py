"""The README's first picture: the quickstart at work in ComfyUI's page, photographed in the middle of a
run."""

from __future__ import annotations

import json
from typing import Any

from .browser import NEXT_END, RUN_BUTTON, how_to_get_chromium, launch, open_comfyui, run_by_click
from .comfy_server import ROOT
from .demo import ENCODE, GENERATE
from .environment import say
from .problem import Problem

PICTURE = ROOT / "docs" / "pictures" / "nodes.png"
PROMPT, PICTURES, FIRST_SEED, SEED = "castle", 4, 20, 8  # a name in three styles: they do not come out alike
WINDOW = {"width": 1720, "height": 1300}
LEFT, TOP, MARGIN = 120, 330, 22  # of the graph in the window, below the page's bars and its progress
# Puts the graph there at scale 1, and tells its size with the title bars.
PLACE = """([left, top]) => {
    const nodes = window.app.graph._nodes, canvas = window.app.canvas;
    const least = axis => Math.min(...nodes.map(node => node.pos[axis]));
    const most = axis => Math.max(...nodes.map(node => node.pos[axis] + node.size[axis]));
    canvas.ds.scale = 1;
    canvas.ds.offset = [left - least(0), top - least(1) + 30];
    canvas.deselectAllNodes?.();
    canvas.setDirty(true, true);
    return [most(0) - least(0), most(1) - least(1) + 30];
}"""
SET = """([type, name, value]) => {
    const node = window.app.graph._nodes.find(node => node.type === type);
    node.widgets.find(widget => widget.name === name).value = value;
}"""
# Half of the picture is there. Asked at every frame, because the whole run takes few of them.
HALFWAY = """type => {
    const node = window.app.graph._nodes.find(node => node.type === type);
    return node.progress > 0.4 && (node.imgs ?? []).some(image => image.naturalWidth > 0);
}"""


def take_readme_picture(url: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = launch(driver)
        if browser is None:
            raise Problem("no Chromium was found.", how_to_get_chromium())
        page = open_comfyui(browser, url, Comfy_Locale="en", Comfy_NodeBadge_NodeSourceBadgeMode="None")
        page.set_viewport_size(WINDOW)
        workflow = json.loads((ROOT / "workflows" / "quickstart.json").read_text(encoding="utf-8"))
        page.evaluate("workflow => window.app.loadGraphData(workflow)", workflow)
        settings = ((ENCODE, "text", PROMPT), (GENERATE, "batch_size", PICTURES))
        for setting in (*settings, (GENERATE, "seed", FIRST_SEED)):
            page.evaluate(SET, list(setting))
        width, height = page.evaluate(PLACE, [LEFT, TOP])
        ended = run_by_click(page)
        if ended != "execution_success":
            raise Problem(f"the quickstart did not run: {ended}", "see ComfyUI's log.")
        page.evaluate(SET, [GENERATE, "seed", SEED])
        page.wait_for_timeout(700)  # the saved pictures are loaded when they are first drawn
        photograph_halfway(page, (width, height))
        browser.close()


def photograph_halfway(page: Any, size: tuple[int, int]) -> None:
    page.evaluate(NEXT_END)
    page.locator(RUN_BUTTON).first.click()
    page.mouse.move(5, 900)
    page.wait_for_function(HALFWAY, arg=GENERATE, polling="raf")
    clip = {
        "x": LEFT - MARGIN,
        "y": TOP - MARGIN,
        "width": size[0] + 2 * MARGIN,
        "height": size[1] + 2 * MARGIN,
    }
    page.screenshot(path=PICTURE, clip=clip)
    page.evaluate("() => window.runEnd")
    say(f"  {PICTURE.name}: {clip['width']} x {clip['height']}")
