"""ComfyUI's page in a Chromium that is found on this machine. None is ever downloaded."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from . import client

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
VARIABLE = "JACOBI_AR_CHROMIUM"
SWITCHES = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-quic"]  # fmt: skip
LOADED = "() => !!window.LiteGraph?.registered_node_types?.['JacobiARGenerate'] && !!window.app?.graph"
# Resolves when the next run ends: "execution_success", or the error's data as text.
NEXT_END = """() => { window.runEnd = new Promise(resolve => {
    const api = window.app.api;
    api.addEventListener('execution_success', () => resolve('execution_success'), {once: true});
    api.addEventListener('execution_error', event => resolve(JSON.stringify(event.detail)), {once: true});
}) }"""
# Pictures on nodes are loaded when the nodes are drawn, so all of them have to be in view.
SHOW_ALL = """() => {
    const nodes = window.app.graph._nodes, canvas = window.app.canvas;
    const left = Math.min(...nodes.map(n => n.pos[0])), top = Math.min(...nodes.map(n => n.pos[1]));
    const right = Math.max(...nodes.map(n => n.pos[0] + n.size[0]));
    const bottom = Math.max(...nodes.map(n => n.pos[1] + n.size[1]));
    const scale = Math.min((innerWidth - 110) / (right - left), (innerHeight - 230) / (bottom - top), 1);
    canvas.ds.scale = scale;
    canvas.ds.offset = [80 / scale - left, 190 / scale - top];
    canvas.setDirty(true, true);
}"""
RUN_BUTTON = '[data-testid="queue-button"]'


def find_chromium() -> str | None:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    on_path = next((found for name in NAMES if (found := shutil.which(name))), None)
    return on_path or next((place for place in PLACES if Path(place).is_file()), None)


def how_to_get_chromium() -> str:
    if sys.platform == "linux":
        return f"Install it (on Debian: apt-get install chromium) or set {VARIABLE} to one."
    return f"Install Chrome or Chromium, or set {VARIABLE} to one."


def launch(driver: Any) -> Any | None:
    """A headless browser for a started Playwright; None where this machine has no Chromium."""
    program = find_chromium()
    return program and driver.chromium.launch(executable_path=program, headless=True, args=SWITCHES)


def open_comfyui(browser: Any, url: str, **settings: Any) -> Any:
    """A tab with ComfyUI's page, ready and settled; `settings` are ComfyUI's own, dots as underscores."""
    client.post(url, "/settings", {"Comfy.Minimap.Visible": False, **dotted(settings)})
    tab = browser.new_page(viewport={"width": 1720, "height": 1200})
    tab.set_default_timeout(60_000)
    tab.goto(url)
    tab.wait_for_function(LOADED)
    tab.wait_for_timeout(1500)  # the default workflow and dialogs come in late
    return tab


def run_by_click(page: Any) -> str:
    """Presses Run and waits: "execution_success", or what went wrong."""
    page.evaluate(NEXT_END)
    page.locator(RUN_BUTTON).first.click()
    return page.evaluate("() => window.runEnd")


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
