"""Runs prompts on a ComfyUI server: HTTP to queue and fetch, the websocket for what happens meanwhile.

Needs aiohttp, which ComfyUI itself brings.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .problem import Problem

PREVIEW_WITH_METADATA = 4  # the type of binary frame that the feature flag below asks for
ENDINGS = {"execution_success": "success", "execution_error": "error", "execution_interrupted": "interrupted"}

Event = tuple[str, dict[str, Any]]


@dataclass
class Preview:
    node: str
    image: bytes


@dataclass
class Run:
    """One prompt from queueing to its end."""

    status: str = ""  # success | error | interrupted
    events: list[Event] = field(default_factory=list)
    previews: list[Preview] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)  # node id -> what it showed in the page
    seconds: float = 0.0  # from queueing to the end

    def data(self, kind: str) -> list[dict[str, Any]]:
        """The data of every event of one kind."""
        return [data for name, data in self.events if name == kind]

    @property
    def cached(self) -> set[str]:
        """Nodes that did not run because their results were still there."""
        return {node for data in self.data("execution_cached") for node in data["nodes"]}

    @property
    def error(self) -> str:
        return "".join(data["exception_message"] for data in self.data("execution_error"))

    @property
    def images(self) -> list[dict[str, str]]:
        """Saved pictures, as /view takes them."""
        return [image for shown in self.outputs.values() for image in shown.get("images", ())]


class Refused(Problem):
    """The server found the prompt invalid before running it."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        faults = [
            f"{fault['message']}: {fault['details']}"
            for node in answer.get("node_errors", {}).values()
            for fault in node["errors"]
        ]
        message = "; ".join(faults) or answer.get("error", {}).get("message", json.dumps(answer))
        super().__init__(
            f"ComfyUI refused the prompt: {message}", "correct the value or the node that it names."
        )


def get(url: str, path: str) -> Any:
    """The JSON answer of a GET."""
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return json.load(answer)


def post(url: str, path: str, body: dict[str, Any] | None = None) -> bytes:
    data = json.dumps(body or {}).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def fetch_image(url: str, image: dict[str, str]) -> bytes:
    query = urllib.parse.urlencode({key: image[key] for key in ("filename", "subfolder", "type")})
    with urllib.request.urlopen(f"{url}/view?{query}", timeout=60) as answer:
        return answer.read()


def run_prompt(
    url: str,
    prompt: dict[str, Any],
    *,
    workflow: dict[str, Any] | None = None,
    on_event: Callable[[str, dict[str, Any]], None] | None = None,
    timeout: float = 600,
) -> Run:
    """Queue an API prompt and wait for its end. `on_event` is called as things happen, previews included
    (kind "preview"). `workflow` is embedded into the saved pictures, as the page does."""
    return asyncio.run(asyncio.wait_for(follow(url, prompt, workflow, on_event), timeout))


async def follow(
    url: str,
    prompt: dict[str, Any],
    workflow: dict[str, Any] | None,
    on_event: Callable[[str, dict[str, Any]], None] | None,
) -> Run:
    import aiohttp

    run = Run()
    client = uuid.uuid4().hex
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/ws?clientId={client}", max_msg_size=0) as socket,
    ):
        await socket.send_json({"type": "feature_flags", "data": {"supports_preview_metadata": True}})
        body: dict[str, Any] = {"prompt": prompt, "client_id": client}
        if workflow is not None:
            body["extra_data"] = {"extra_pnginfo": {"workflow": workflow}}
        start = time.monotonic()
        async with session.post(f"{url}/prompt", json=body) as answer:
            queued = await answer.json()
            if answer.status != 200:
                raise Refused(queued)
        id_ = queued["prompt_id"]
        async for message in socket:
            if message.type == aiohttp.WSMsgType.TEXT:
                event = json.loads(message.data)
                kind, data = event["type"], event.get("data") or {}
            elif message.type == aiohttp.WSMsgType.BINARY:
                preview = read_preview(message.data)
                if preview is None:
                    continue
                run.previews.append(preview)
                kind, data = "preview", {"node": preview.node, "prompt_id": id_}
            else:
                break
            if data.get("prompt_id", id_) != id_:
                continue
            run.events.append((kind, data))
            if on_event is not None:
                on_event(kind, data)
            if kind in ENDINGS:
                run.status = ENDINGS[kind]
                break
        run.seconds = time.monotonic() - start
        if not run.status:
            raise Problem("ComfyUI closed the connection before the picture was done.", "see ComfyUI's log.")
        run.outputs = await outputs_of(session, url, id_)
    return run


async def outputs_of(session: Any, url: str, id_: str) -> dict[str, Any]:
    """The history entry is written just after the last event: wait for it."""
    for _ in range(200):
        async with session.get(f"{url}/history/{id_}") as answer:
            history = await answer.json()
        if id_ in history:
            return history[id_]["outputs"]
        await asyncio.sleep(0.02)
    return {}


def read_preview(frame: bytes) -> Preview | None:
    """A binary frame: type (4 bytes, big endian), length of the JSON, JSON, image."""
    if int.from_bytes(frame[:4], "big") != PREVIEW_WITH_METADATA:
        return None
    length = int.from_bytes(frame[4:8], "big")
    facts = json.loads(frame[8 : 8 + length])
    return Preview(str(facts["node_id"]), frame[8 + length :])
