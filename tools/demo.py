"""`dev.py demo`: one picture from workflows/quickstart.json, over ComfyUI's HTTP API."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from . import client
from .comfy_server import ROOT
from .environment import say
from .problem import Problem
from .workflow_api import Prompt, only, to_api, with_decoder, with_inputs

# By the name on the command line; the first is the default.
DECODERS = {
    "same-picture": "JacobiARDecoderSamePicture",
    "sjd": "JacobiARDecoderSJD",
    "autoregressive": "JacobiARDecoderAutoregressive",
    "greedy": "JacobiARDecoderGreedy",
}
GENERATE = "JacobiARGenerate"
ENCODE = "JacobiAREncodePrompt"


def make_picture(
    url: str, pictures: Path, prompt: str | None, decoder: str, seed: int | None, out: Path | None
) -> None:
    workflow = json.loads((ROOT / "workflows" / "quickstart.json").read_text(encoding="utf-8"))
    object_info = client.get(url, "/object_info")
    api = build(to_api(workflow, object_info), object_info, prompt, decoder, seed)
    run = client.run_prompt(url, api, workflow=workflow, on_event=ProgressLine(only(api, GENERATE)))
    if run.status != "success":
        raise Problem(
            run.error.strip() or f"the run ended as: {run.status}.", "ComfyUI's log holds the details."
        )
    text = value_of(api, ENCODE, "text")
    used_seed = value_of(api, GENERATE, "seed")
    target = out or pictures / f"{slug(text)}-{decoder}-{used_seed}.png"
    write_picture(target, client.fetch_image(url, run.images[0]))
    report(run, text, decoder, target)
    for note in "\n".join(run.outputs.get(only(api, ENCODE), {}).get("text", ())).splitlines():
        say(f"  note              {note}")


def build(
    api: Prompt, object_info: dict[str, Any], prompt: str | None, decoder: str, seed: int | None
) -> Prompt:
    api = with_decoder(api, DECODERS[decoder], object_info)
    if prompt is not None:
        api = with_inputs(api, ENCODE, text=prompt)
    if seed is not None:
        api = with_inputs(api, GENERATE, seed=seed)
    return api


def value_of(api: Prompt, class_type: str, name: str) -> Any:
    return next(node["inputs"][name] for node in api.values() if node["class_type"] == class_type)


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "no-prompt"


def write_picture(target: Path, png: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(png)
    except OSError as error:
        raise Problem(
            f"the picture could not be written to {target}: {error}", "name another file by --out."
        ) from error


def report(run: client.Run, text: str, decoder: str, target: Path) -> None:
    facts = facts_of(run)
    passes, reference = facts["passes"], facts["autoregressive_passes"]
    say(f'picture of "{text}": {target.resolve()}')
    say(f"  decoder           {facts.get('decoder', decoder)} ({facts['promise']})")
    say(f"  passes            {passes}")
    say(f"  step by step      {reference}, so {reference / passes:.1f} times as many")
    say(
        f"  seconds           {facts['seconds']:.2f} for the tokens, {run.seconds:.2f} for the whole workflow"
    )


def facts_of(run: client.Run) -> dict[str, Any]:
    """What the Generate node reported about its run."""
    for shown in run.outputs.values():
        if "jacobi_ar" in shown:
            return shown["jacobi_ar"][0]
    raise Problem(
        "the run reported no pass counts.", "use the quickstart workflow as it came with this package."
    )


class ProgressLine:
    """One line in the terminal that grows with the picture; where there is no terminal, a line each tenth."""

    WIDTH = 32

    def __init__(self, node: str) -> None:
        self.node = node
        self.live = sys.stdout.isatty()
        self.tenth = -1

    def __call__(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "progress" and data["node"] == self.node:
            self.show(data["value"], data["max"])
        elif kind.startswith("execution_") and self.live and self.tenth >= 0:
            print(flush=True)
            self.tenth = -1

    def show(self, value: int, total: int) -> None:
        full = round(self.WIDTH * value / total)
        line = f"  [{'#' * full}{'.' * (self.WIDTH - full)}] {value:.0f} of {total:.0f} tokens"
        tenth = 10 * value // total
        if self.live:
            print(f"\r{line}", end="", flush=True)
        elif tenth != self.tenth:
            print(line, flush=True)
        self.tenth = tenth
