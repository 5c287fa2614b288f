"""The token grid that Load Token Grid has as its example, made by a run of the nodes themselves."""

from __future__ import annotations

import json
from pathlib import Path

from . import client
from .comfy_server import ROOT
from .demo import ENCODE, GENERATE
from .environment import say
from .problem import Problem
from .workflow_api import only, to_api, with_inputs

EXAMPLE = ROOT / "nodes" / "example_tokens.safetensors"
PROMPT, SEED, PREFIX = "octopus", 4, "tokens/example"


def make_example(url: str, output: Path) -> None:
    """The quickstart's picture of PROMPT, saved by Save Token Grid into the folder `output` of the server
    and copied into the package."""
    workflow = json.loads((ROOT / "workflows" / "quickstart.json").read_text(encoding="utf-8"))
    prompt = to_api(workflow, client.get(url, "/object_info"))
    prompt = with_inputs(with_inputs(prompt, ENCODE, text=PROMPT), GENERATE, seed=SEED)
    tokens = {"tokens": [only(prompt, GENERATE), 0], "filename_prefix": PREFIX}
    prompt["save"] = {"class_type": "JacobiARSaveTokens", "inputs": tokens}
    run = client.run_prompt(url, prompt)
    saved = sorted(output.glob(f"{PREFIX}*.safetensors"))
    if run.status != "success" or not saved:
        raise Problem(
            f"the example token grid was not made: {run.error or 'nothing was saved'}", "see ComfyUI's log."
        )
    EXAMPLE.write_bytes(saved[-1].read_bytes())
    say(f"  {EXAMPLE.name}: {PROMPT}, seed {SEED}")
