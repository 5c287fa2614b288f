"""Cards of the templates that need no download, each from a run: `python tools/dev.py cards` makes them anew,
as is due when the built-in model or a template has changed. (Those of the others: family_cards.py.)"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from PIL import Image

from . import client
from .comfy_server import ROOT
from .environment import say
from .family_cards import CARDS, SIDE
from .kept_tokens_picture import ROWS, draw_kept_tokens
from .problem import Problem
from .workflow_api import to_api

WORKFLOWS = ROOT / "workflows"
# Template -> the nodes whose pictures it shows, where they are not those that the run saves.
SHOWN = {"image_to_tokens": ("10",), "inpaint_tokens": ("14",), "same_picture": ("7", "11")}
IN_README = {"report": ROOT / "docs" / "pictures" / "report.png"}  # the same, whole

Outputs = Mapping[str, Mapping[str, Any]]  # node id -> what it showed in the page


def make_cards(url: str) -> None:
    """Runs every such template on the server and writes its card; the README's pictures of runs too."""
    kept: dict[str, list[Image.Image]] = {}
    classes = client.get(url, "/object_info")
    for path in sorted(path for path in WORKFLOWS.glob("*.json") if path.stem not in CARDS):
        name, workflow = path.stem, json.loads(path.read_text(encoding="utf-8"))
        run = client.run_prompt(url, to_api(workflow, classes), workflow=workflow)
        if run.status != "success":
            raise Problem(f"the template {name} did not run: {run.error}", "see ComfyUI's log.")
        pictures = pictures_of(url, name, run.outputs)
        card_of(pictures).save(path.with_suffix(".jpg"), quality=90, optimize=True)
        if name in IN_README:
            pictures[0].save(IN_README[name], optimize=True)
        say(f"  {name}: {len(pictures)} pictures, {run.seconds:.1f} s")
        if name in ROWS:
            nodes = ROWS[name][1]
            kept[name] = [one for node in nodes for one in fetched(url, run.outputs[node]["images"])]
    draw_kept_tokens(kept)


def pictures_of(url: str, template: str, outputs: Outputs) -> list[Image.Image]:
    """Those of a run that its card shows."""
    return fetched(url, shown_images(template, outputs))


def fetched(url: str, images: Iterable[dict[str, str]]) -> list[Image.Image]:
    return [Image.open(io.BytesIO(client.fetch_image(url, image))).convert("RGB") for image in images]


def shown_images(template: str, outputs: Outputs) -> Iterator[dict[str, str]]:
    """Names of those pictures, as /view takes them."""
    for node in sorted(outputs, key=int):
        images = outputs[node].get("images", ())
        nodes = SHOWN.get(template)
        yield from (image for image in images if (node in nodes if nodes else image["type"] == "output"))


def card_of(pictures: Sequence[Image.Image]) -> Image.Image:
    """The pictures in rows on a square: RGB, SIDE x SIDE. A single one stands on the colour of its corner."""
    width, height = pictures[0].size
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    side = max(columns * width, rows * height)
    left, top = (side - columns * width) // 2, (side - rows * height) // 2
    sheet = Image.new("RGB", (side, side), pictures[0].getpixel((0, 0)) if len(pictures) == 1 else "white")
    for index, picture in enumerate(pictures):
        sheet.paste(picture, (left + index % columns * width, top + index // columns * height))
    return sheet.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
