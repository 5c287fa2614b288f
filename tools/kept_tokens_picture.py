"""The README's picture of tokens as material: what the templates reroll_rows and inpaint_tokens draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image

from .comfy_server import ROOT
from .labelled_rows import labelled_rows

PICTURE = ROOT / "docs" / "pictures" / "tokens.png"
# Template -> what the row says, the nodes that show its pictures: the first one's, then the variants'.
ROWS = {
    "reroll_rows": ("Keep Rows: the upper 9 of 16 rows stay, the mouth is drawn anew (exact)", ("6", "10")),
    "inpaint_tokens": ("Token Mask: only the masked eyes are drawn anew (approximate)", ("6", "17")),
}


def draw_kept_tokens(pictures: Mapping[str, Sequence[Image.Image]]) -> None:
    """`pictures`: template -> its row."""
    labelled_rows([(text, pictures[name]) for name, (text, _) in ROWS.items()]).save(PICTURE, optimize=True)
