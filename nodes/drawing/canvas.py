"""A dark sheet to draw on: shapes with smooth edges, pictures, text."""

from __future__ import annotations

from PIL import Image, ImageDraw

from . import fonts

BACKGROUND, CARD, TRACK = "#1e1f22", "#292b2f", "#3b3e44"
BRIGHT, SOFT, FAINT = "#f1f3f4", "#c3c7cc", "#9aa0a6"
GREEN, BLUE, AMBER, GREY = "#81c995", "#8ab4f8", "#fdd663", "#bdc1c6"
FINER = 2  # shapes are drawn so many times larger and reduced: Pillow does not smooth their edges

Box = tuple[float, float, float, float]  # left, top, right, bottom


class Canvas:
    """Coordinates are in units of `scale` pixels. Shapes lie under pictures, pictures under text."""

    def __init__(self, width: float, height: float, scale: float = 1.0) -> None:
        self.scale, self.size = scale, (round(width * scale), round(height * scale))
        self.shapes = Image.new("RGB", tuple(side * FINER for side in self.size), BACKGROUND)
        self.pen = ImageDraw.Draw(self.shapes)
        self.pictures: list[tuple[Image.Image, tuple[int, int]]] = []
        self.texts: list[tuple[tuple[float, float], str, int, str]] = []

    def _fine(self, *numbers: float) -> list[float]:
        return [number * self.scale * FINER for number in numbers]

    def rectangle(self, box: Box, fill: str, radius: float = 0) -> None:
        left, top, right, bottom = self._fine(*box)
        if right - left >= 1 and bottom - top >= 1:
            self.pen.rounded_rectangle(
                (left, top, right - 1, bottom - 1), fill=fill, radius=self._fine(radius)[0]
            )

    def line(self, points: list[tuple[float, float]], fill: str, width: float = 1) -> None:
        fine = [tuple(self._fine(*point)) for point in points]
        self.pen.line(fine, fill=fill, width=max(1, round(self._fine(width)[0])), joint="curve")

    def dashed(self, start: tuple[float, float], end: tuple[float, float], fill: str) -> None:
        length = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        pieces = int(length // 9) + 1
        for piece in range(pieces):
            ends = [
                tuple(a + (b - a) * part / pieces for a, b in zip(start, end, strict=True))
                for part in (piece, piece + 0.55)
            ]
            self.line(ends, fill, 1.3)

    def polygon(self, points: list[tuple[float, float]], fill: str) -> None:
        self.pen.polygon([tuple(self._fine(*point)) for point in points], fill=fill)

    def picture(self, image: Image.Image, box: Box) -> None:
        """Fits the image into the box, in its middle; small ones are enlarged without blur."""
        left, top, right, bottom = (number * self.scale for number in box)
        factor = min((right - left) / image.width, (bottom - top) / image.height)
        size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
        crisp = Image.Resampling.NEAREST if factor >= 2 else Image.Resampling.LANCZOS
        resized = image if size == image.size else image.resize(size, crisp)
        at = round((left + right - size[0]) / 2), round((top + bottom - size[1]) / 2)
        self.pictures.append((resized, at))

    def stretched(self, image: Image.Image, box: Box) -> None:
        """Fills the box with the image, blurred."""
        left, top, right, bottom = (round(number * self.scale) for number in box)
        size = max(1, right - left), max(1, bottom - top)
        self.pictures.append((image.resize(size, Image.Resampling.BILINEAR), (left, top)))

    def text(
        self, at: tuple[float, float], text: str, size: float, fill: str = BRIGHT, align: float = 0
    ) -> None:
        """One line on the baseline `at`; `align` 0 starts there, 0.5 is centred, 1 ends there."""
        pixels = self.pixels(size)
        x = at[0] * self.scale - align * fonts.length(text, pixels)
        self.texts.append(((round(x), round(at[1] * self.scale)), text, pixels, fill))

    def pixels(self, size: float) -> int:
        return max(1, round(size * self.scale))

    def length(self, text: str, size: float) -> float:
        return fonts.length(text, self.pixels(size)) / self.scale

    def shortened(self, text: str, size: float, width: float) -> str:
        return fonts.shortened(text, self.pixels(size), width * self.scale)

    def wrapped(self, text: str, size: float, width: float, most: int) -> list[str]:
        return fonts.wrapped(text, self.pixels(size), width * self.scale, most)

    def finish(self) -> Image.Image:
        sheet = self.shapes.reduce(FINER)
        for image, at in self.pictures:
            sheet.paste(image, at)
        draw = ImageDraw.Draw(sheet)
        for at, text, size, fill in self.texts:
            fonts.draw_text(draw, at, text, size, fill)
        return sheet
