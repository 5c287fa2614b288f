"""ComfyUI started with other options: the same pictures, and a run that is cancelled in any of its parts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from jacobi_ar.tests.host.support import LOAD, Host, node_of, pixels, when_progress
from jacobi_ar.tools import client
from jacobi_ar.tools.comfy_server import ComfyServer
from jacobi_ar.tools.demo import ENCODE, GENERATE, facts_of
from jacobi_ar.tools.workflow_api import Prompt

pytestmark = pytest.mark.host

CACHE_NONE, CACHE_LRU = "cache-none, no previews", "cache-lru 10"
OPTIONS: dict[str, dict[str, Any]] = {
    CACHE_NONE: {"options": ["--cache-none"], "preview_method": "none"},
    CACHE_LRU: {"options": ["--cache-lru", "10"]},
}
COMPARE, REPORT = "JacobiARCompareDecoders", "JacobiARDecodingReport"
PARTS = {
    "load": LOAD,
    "prompt": ENCODE,
    "generate": GENERATE,
    "decode": "JacobiARDecodeTokens",
    "report": REPORT,
}
MEBIBYTE = 2**20
Pictures = list[np.ndarray]


@pytest.fixture(scope="module", params=OPTIONS)
def options(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def started(options: str, comfyui: Path, test_folder: Path) -> Iterator[ComfyServer]:
    with ComfyServer(
        comfyui, test_folder, name=options.split(",")[0], threads=1, **OPTIONS[options]
    ) as server:
        yield server


@pytest.fixture(scope="module")
def other(started: ComfyServer, host: Host) -> Host:
    """The server with these options; `host` is the one with ComfyUI's defaults."""
    return Host(started.url, host.classes)


def with_seeds(prompt: Prompt, shift: int) -> Prompt:
    """Every seed of the prompt moved on."""
    for node in prompt.values():
        if isinstance(node["inputs"].get("seed"), int):
            node["inputs"]["seed"] += shift
    return prompt


def pictures_of(host: Host, prompt: Prompt, run: client.Run) -> Pictures:
    """What the nodes of a run show, without a comparison's sheet, which has the seconds on it."""
    shown: Pictures = []
    for id_ in sorted(run.outputs):
        images = prompt[id_]["inputs"].get("images", prompt[id_]["inputs"].get("image"))
        if prompt[id_]["class_type"] != COMPARE and (not images or not is_sheet(prompt, images)):
            for image in run.outputs[id_].get("images", ()):
                shown.append(pixels(client.fetch_image(host.url, image)))
    return shown


def is_sheet(prompt: Prompt, link: list[Any]) -> bool:
    return prompt[link[0]]["class_type"] == COMPARE and link[1] == 0


@pytest.mark.parametrize("workflow", ["quickstart", "prompt_list", "reroll_rows", "compare"])
def test_the_pictures_are_those_of_the_defaults_with_another_seed_too(
    host: Host, other: Host, options: str, workflow: str
) -> None:
    for shift in (0, 1):
        prompt = with_seeds(host.api(workflow), shift)
        run, expected = other.run(prompt), host.run(prompt)
        assert (run.status, expected.status) == ("success", "success"), run.error + expected.error
        got, wanted = pictures_of(other, prompt, run), pictures_of(host, prompt, expected)
        assert len(got) == len(wanted) > 0
        assert all(map(np.array_equal, got, wanted))
        kept = node_of(prompt, LOAD) in run.cached
        if options != CACHE_LRU:
            assert not kept
        elif shift == 1:
            assert kept  # before that, where the workflow before had the same loader


def test_previews_come_where_they_are_wanted(other: Host, options: str) -> None:
    run = other.run(other.quickstart("autoregressive", batch_size=8, seed=13))
    assert run.status == "success" and run.data("progress")
    assert bool(run.previews) == (options != CACHE_NONE)
    assert (facts_of(run)["preview_seconds"] > 0) == (options != CACHE_NONE)


def report_prompt(host: Host, **generate: Any) -> Prompt:
    prompt = host.api("report")
    prompt[node_of(prompt, GENERATE)]["inputs"].update(generate)
    return prompt


def when_executing(node: str, then: Callable[[], None]) -> Callable[[str, dict[str, Any]], None]:
    """Calls `then` when the node begins."""

    def on_event(kind: str, data: dict[str, Any]) -> None:
        if kind == "executing" and data["node"] == node:
            then()

    return on_event


@pytest.mark.parametrize("part", PARTS)
def test_a_run_can_be_cancelled_in_each_of_its_parts(host: Host, other: Host, part: str) -> None:
    prompt = report_prompt(other, seed=40, batch_size=8)
    nodes = [node_of(prompt, class_type) for class_type in PARTS.values()]
    here = list(PARTS).index(part)
    other.forget()
    if part == "generate":
        events = when_progress(256 * 8 // 4, other.interrupt)
    else:
        events = when_executing(nodes[here], other.interrupt)
    run = other.run(prompt, on_event=events)
    assert run.status == "interrupted"
    assert nodes[here] in {data["node"] for data in run.data("executing")}
    assert not set(nodes[here + 1 :]) & {data["node"] for data in run.data("executed")}

    prompt = with_seeds(other.quickstart(), 40)
    again, expected = other.run(prompt), host.run(prompt)
    assert again.status == "success", again.error
    assert np.array_equal(other.picture(again), host.picture(expected))


@pytest.mark.skipif(sys.platform != "linux", reason="reads how much memory the server asked Linux for")
def test_a_cancelled_run_gives_its_memory_back(started: ComfyServer, other: Host) -> None:
    assert started.process is not None
    process = psutil.Process(started.process.pid)
    other.run(other.quickstart(seed=41))  # the model is there, and what is made once
    before, during = process.memory_info().vms, 0

    def cancel() -> None:
        nonlocal during
        during = process.memory_info().vms
        other.interrupt()

    prompt = other.quickstart("autoregressive", seed=42, batch_size=64)
    assert other.run(prompt, on_event=when_progress(64, cancel)).status == "interrupted"
    assert during - before > 100 * MEBIBYTE  # the cache of 64 pictures
    kept = until_below(process, before + (during - before) // 5)
    assert kept - before < (during - before) // 5


def until_below(process: psutil.Process, enough: int, seconds: float = 20) -> int:
    """Bytes that the process has asked for, once they are few enough: ComfyUI tidies up at intervals."""
    end = time.monotonic() + seconds
    while (bytes_ := process.memory_info().vms) >= enough and time.monotonic() < end:
        time.sleep(0.2)
    return bytes_
