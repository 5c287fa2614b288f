"""The drawings that the built-in model was trained on, as pictures in a folder, for the recall of names.

They are not in this repository. Unpack the npm packages `@iconify-json/fluent-emoji-flat` (MIT, Microsoft)
and `flag-icons` (MIT, Panayiotis Lipiridis), install `resvg-py`, and:

python tools/bench.py drawings --icons .../icons.json --flags .../flag-icons --out FOLDER
"""

from __future__ import annotations

import io
import json
from pathlib import Path

from PIL import Image

SIDE = 128


def draw_all(icons: Path, flags: Path | None, out: Path) -> int:
    """Rasterise every icon and flag to `out`/NAME.png; returns how many."""
    out.mkdir(parents=True, exist_ok=True)
    found = json.loads(icons.read_text(encoding="utf-8"))
    width, height = found.get("width", 16), found.get("height", 16)
    count = 0
    for key, icon in found["icons"].items():
        box = f'viewBox="0 0 {width} {height}" width="{SIDE}" height="{SIDE}"'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{icon["body"]}</svg>'
        count += _draw(svg, out / f"{key.replace('-', ' ')}.png")
    countries = [] if flags is None else json.loads((flags / "country.json").read_text(encoding="utf-8"))
    for country in countries:
        svg = (flags / country["flag_4x3"]).read_text(encoding="utf-8")
        count += _draw(svg, out / f"flag {country['name'].lower()}.png".replace("/", " "))
    return count


def _draw(svg: str, path: Path) -> int:
    """On white, in the middle of a square."""
    import resvg_py  # no dependency of anything else here

    drawn = Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=svg, width=SIDE)))).convert("RGBA")
    square = Image.new("RGBA", (SIDE, SIDE), "white")
    square.alpha_composite(drawn, (0, (SIDE - drawn.height) // 2))
    square.convert("RGB").save(path)
    return 1
