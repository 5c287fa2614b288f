"""One real ComfyUI for the session, with this package in it. `python tools/dev.py test` prepares it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.tests.host.support import Host
from jacobi_ar.tools import client
from jacobi_ar.tools.browser import how_to_get_chromium, launch, open_comfyui
from jacobi_ar.tools.comfy_server import ComfyServer, empty_base
from jacobi_ar.tools.commands import PREPARED, dev_folder


@pytest.fixture(scope="session")
def comfyui() -> Path:
    if PREPARED not in os.environ:
        pytest.skip("needs a ComfyUI: run the tests by `python tools/dev.py test`")
    return Path(os.environ[PREPARED])


@pytest.fixture(scope="session")
def test_folder(comfyui: Path) -> Path:
    """Apart from the folder of `demo` and `serve`, and without what an earlier session left."""
    folder = dev_folder() / "tests"
    empty_base(folder)
    return folder


@pytest.fixture(scope="session")
def server(comfyui: Path, test_folder: Path) -> Iterator[ComfyServer]:
    # A plain `kill` ends the session as Ctrl-C does, so that the server goes with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # One thread: the model is tiny, and several would fight over a machine that is busy with other things.
    with ComfyServer(comfyui, test_folder, threads=1) as running:
        running.check_package()
        yield running


@pytest.fixture(scope="session")
def host(server: ComfyServer) -> Host:
    return Host(server.url, client.get(server.url, "/object_info"))


@pytest.fixture
def fresh(host: Host) -> Host:
    """The server with nothing cached from earlier tests."""
    host.forget()
    return host


@pytest.fixture(scope="module")  # its driver holds an event loop, which other modules need
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    with playwright.sync_playwright() as driver:
        browser = launch(driver)
        if browser is None:
            pytest.skip(f"needs Chromium. {how_to_get_chromium()}")
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, host: Host) -> Iterator[Any]:
    """ComfyUI's page, ready and settled."""
    tab = open_comfyui(chromium, host.url)
    yield tab
    tab.close()
