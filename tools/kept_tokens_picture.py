"""The README's picture of tokens as material: what the templates reroll_rows and inpaint_tokens draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PIL import Image, ImageDraw, ImageFont

from .comfy_server import ROOT

PICTURE = ROOT / "docs" / "pictures" / "tokens.png"
SIDE, GAP, LABEL = 112, 8, 28
# Template -> what the row says, the nodes that show its pictures: the first one's, then the variants'.
ROWS = {
    "reroll_rows": ("Keep Rows: the upper 9 of 16 rows stay, the mouth is drawn anew (exact)", ("6", "10")),
    "inpaint_tokens": ("Token Mask: only the masked eyes are drawn anew (approximate)", ("6", "17")),
}


def draw_kept_tokens(pictures: Mapping[str, Callable[[str], list[Image.Image]]]) -> None:
    """`pictures`: template -> the pictures that a node of its run showed."""
    found = {
        name: [one for node in nodes for one in pictures[name](node)] for name, (_, nodes) in ROWS.items()
    }
    across = max(len(row) for row in found.values())
    sheet = Image.new("RGB", ((SIDE + GAP) * across + GAP, (SIDE + LABEL + GAP) * len(ROWS) + GAP), "#202124")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=15)
    for number, (name, (text, _)) in enumerate(ROWS.items()):
        top = GAP + number * (SIDE + LABEL + GAP)
        draw.text((GAP, top + 4), text, font=font, fill="#e8eaed")
        for column, picture in enumerate(found[name]):
            small = picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            sheet.paste(small, (GAP + column * (SIDE + GAP), top + LABEL))
    sheet.save(PICTURE, optimize=True)
