"""The cards of the templates for other models: `python tools/family_cards.py` draws them anew (needs Pillow).

They show no picture of the model, because none was made: a name, sizes, and a grid of tokens as an ornament.
"""

from __future__ import annotations

import colorsys
import random
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WORKFLOWS = Path(__file__).resolve().parent.parent / "workflows"
SIDE, MARGIN, CELLS = 384, 32, 12
# Template -> name, kind, what is drawn, download, colour as a hue of the circle and a brightness.
CARDS = {
    "llamagen_t2i": ("LlamaGen", "text to image", "512 x 512", "15 GB with text encoder", 0.58, 0.30),
    "llamagen_c2i": ("LlamaGen", "class to image", "384 x 384", "1.7 GB", 0.48, 0.42),
    "janus_pro": ("Janus-Pro", "1B and 7B", "384 x 384", "4.2 or 14.9 GB", 0.09, 0.55),
    "lumina_mgpt": ("Lumina-mGPT", "7B", "768 x 768", "14.3 GB", 0.78, 0.40),
    "lumina_mgpt_2": ("Lumina-mGPT", "2.0", "768 x 768", "15.8 GB and MoVQGAN", 0.92, 0.50),
    "anole": ("Anole", "7B", "512 x 512", "14.3 GB", 0.33, 0.34),
    "emu3": ("Emu3-Gen", "8B", "720 x 720", "35 GB", 0.68, 0.62),
}


def card(name: str) -> Image.Image:
    """The card of a template: RGB, 384 x 384."""
    title, kind, pixels, download, hue, value = CARDS[name]
    image = Image.new("RGB", (SIDE, SIDE), colour(hue, 0.65, value))
    draw = ImageDraw.Draw(image)
    ornament(draw, random.Random(name), hue, value)
    draw.text((MARGIN, 204), title, "white", ImageFont.load_default(44))
    draw.text((MARGIN, 256), kind, "white", ImageFont.load_default(28))
    draw.text((MARGIN, 306), f"{pixels} pixels", colour(hue, 0.15, 0.95), ImageFont.load_default(20))
    draw.text((MARGIN, 332), f"download {download}", colour(hue, 0.15, 0.95), ImageFont.load_default(20))
    return image


def ornament(draw: ImageDraw.ImageDraw, dice: random.Random, hue: float, value: float) -> None:
    """Tokens that are fixed, those being guessed, and those that are still to come, in reading order."""
    step, rows = (SIDE - 2 * MARGIN) / CELLS, 5
    fixed, guessed = 2 * CELLS + 4, 3 * CELLS + 2
    for cell in range(rows * CELLS):
        x, y = MARGIN + cell % CELLS * step, MARGIN + cell // CELLS * step
        box = (x + 2, y + 2, x + step - 3, y + step - 3)
        if cell < fixed:
            near = (hue + dice.uniform(-0.08, 0.08)) % 1
            draw.rounded_rectangle(box, 4, colour(near, dice.uniform(0.25, 0.6), dice.uniform(0.75, 1)))
        elif cell < guessed:
            draw.rounded_rectangle(box, 4, outline="white", width=2)
        else:
            draw.rounded_rectangle(box, 4, colour(hue, 0.6, value * 1.25))


def colour(hue: float, saturation: float, value: float) -> tuple[int, int, int]:
    """RGB, each 0 to 255."""
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, min(1.0, value))
    return round(255 * red), round(255 * green), round(255 * blue)


if __name__ == "__main__":
    for name in CARDS:
        card(name).save(WORKFLOWS / f"{name}.jpg", quality=90, optimize=True)
