"""What the host tests share: the workflows, and a server with its node classes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ...tools import client
from ...tools.comfy_server import ROOT
from ...tools.demo import DECODERS, ENCODE, GENERATE
from ...tools.workflow_api import Prompt, only, to_api, with_decoder, with_inputs

WORKFLOWS = sorted((ROOT / "workflows").glob("*.json"))
SNAPSHOT = Path(__file__).with_name("schema_snapshot.json")
PREFIX = "JacobiAR"
LOAD = "JacobiARLoadModel"
EMPTY: Prompt = {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 0}},
    "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}},
}


@dataclass
class Host:
    url: str
    classes: dict[str, Any]  # the answer to /object_info

    @property
    def ours(self) -> dict[str, Any]:
        return {id_: info for id_, info in self.classes.items() if id_.startswith(PREFIX)}

    def api(self, workflow: str = "quickstart") -> Prompt:
        return to_api(read_workflow(workflow), self.classes)

    def quickstart(self, decoder: str = "same-picture", text: str = "red heart", **generate: Any) -> Prompt:
        """The quickstart with another decoder, prompt, or values at the Generate node."""
        prompt = with_inputs(with_decoder(self.api(), DECODERS[decoder], self.classes), ENCODE, text=text)
        return with_inputs(prompt, GENERATE, **{"seed": 1, **generate})

    def run(self, prompt: Prompt, **options: Any) -> client.Run:
        return client.run_prompt(self.url, prompt, timeout=120, **options)

    def picture(self, run: client.Run, index: int = 0) -> np.ndarray:
        """Pixels of a saved picture: [height, width, 3] uint8."""
        return pixels(client.fetch_image(self.url, run.images[index]))

    def interrupt(self) -> None:
        client.post(self.url, "/interrupt")

    def forget(self) -> None:
        """Drops the models and every cached result."""
        client.post(self.url, "/free", {"unload_models": True, "free_memory": True})
        self.run(EMPTY)  # memory is freed before the next prompt, so this one takes the old results along


def read_workflow(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "workflows" / f"{name}.json").read_text(encoding="utf-8"))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def node_of(prompt: Prompt, class_type: str) -> str:
    return only(prompt, class_type)


def when_progress(at_least: int, then: Callable[[], None]) -> Callable[[str, dict[str, Any]], None]:
    """Calls `then` once, when a run has come so far."""
    called = False

    def on_event(kind: str, data: dict[str, Any]) -> None:
        nonlocal called
        if kind == "progress" and data["value"] >= at_least and not called:
            called = True
            then()

    return on_event


def schema(info: dict[str, Any]) -> dict[str, list[str]]:
    """What saved workflows hold on to: inputs by name and type in the page's order, and the types of outputs.

    Outputs are linked by number, so their names may change.
    """
    groups = [info["input"].get(kind, {}) for kind in ("required", "optional")]
    inputs = [f"{name}: {type_name(group[name][0])}" for group in groups for name in group]
    return {"inputs": inputs, "outputs": [type_name(type_) for type_ in info["output"]]}


def type_name(type_: Any) -> str:
    return "COMBO" if isinstance(type_, list) else type_
