"""The sheet of a comparison while it grows, and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image
from torch import Tensor

from ..decoding import StepReport
from ..model_loaders.image_transformer import Prompt
from . import host
from .comparison import Entry, Figures, figures_of
from .drawing.canvas import AMBER, BLUE, GREEN, GREY
from .drawing.comparison_sheet import SheetCell, comparison_sheet
from .finished_runs import FinishedRun
from .pictures import to_image
from .previews import PreviewBudget, preview_picture, without_holes
from .run_settings import RunSettings
from .values import ModelValue

COLOURS = {"reference": GREY, "same picture": GREEN, "same distribution": BLUE, "approximate": AMBER}
NO_PROMPT = "(no prompt)"
SECONDS = "seconds: decoding alone, after a warm-up"


class LiveSheet:
    """Finished pictures, the one that grows, and empty places for the rest."""

    def __init__(
        self, model: ModelValue, prompt: Prompt, entries: Sequence[Entry], settings: RunSettings
    ) -> None:
        self.tokenizer, self.entries, self.settings = model.tokenizer, list(entries), settings
        self.title = prompt.text.strip() or NO_PROMPT
        self.lines = [f"{model.model.name} · {SECONDS}", *settings.lines()]
        self.runs: list[FinishedRun] = []
        self.pictures: list[Tensor] = []  # [1, height, width, 3] float32 each, where ComfyUI wants them
        self.images: list[Image.Image] = []
        self.wanted = host.previews_wanted()
        self.budget = PreviewBudget()

    def finish(self, run: FinishedRun) -> None:
        """The next entry is done."""
        self.runs.append(run)
        self.pictures.append(host.to_output(self.tokenizer.decode(run.tokens)))
        self.images.append(to_image(self.pictures[-1][0]))

    def preview(self) -> Image.Image | None:
        """The sheet with what is finished."""
        return self.budget.draw(self.draw) if self.wanted else None

    def growing(self, report: StepReport) -> Image.Image | None:
        """The sheet with the picture that is being decoded, where there is time for it."""
        if not (self.wanted and report.result is None and self.budget.due()):
            return None
        return self.budget.draw(lambda: self.draw(report.grids()))

    def draw(self, grids: Tensor | None = None) -> Image.Image:
        """grids: [1, rows, cols], -1 where open: of the entry that runs."""
        images: list[Image.Image | None] = [*self.images]
        if grids is not None:
            pixels = self.tokenizer.decode(without_holes(grids))
            images.append(preview_picture(pixels, grids, max(pixels.shape[1:3])))
        waiting = len(self.entries) - len(images)
        found = figures_of(self.entries, [*self.runs, *[None] * (len(self.entries) - len(self.runs))])
        slowest = max((figures.seconds for figures in found if figures), default=1.0)
        cells = [
            cell_of(entry, image, figures, slowest)
            for entry, image, figures in zip(self.entries, [*images, *[None] * waiting], found, strict=True)
        ]
        grid = self.settings.grid
        side = max(grid.rows, grid.cols) * self.tokenizer.tokenizer.factor
        return comparison_sheet(cells, self.title, self.lines, grid.rows / grid.cols, side)


def cell_of(entry: Entry, image: Image.Image | None, figures: Figures | None, slowest: float) -> SheetCell:
    known = {}
    if figures is not None:
        known = {
            "headline": "" if figures.speed_up is None else f"{figures.speed_up:.1f}x",
            "figures": (
                f"{figures.seconds:.2f} s",
                f"{figures.passes} passes",
                f"{figures.tokens_a_pass:.1f} tokens a pass",
            ),
            "share": figures.seconds / slowest,
        }
        if figures.equal is not None and not entry.is_reference:
            known["note"] = f"{figures.equal} of {figures.cells} tokens as the reference"
    return SheetCell(
        name=entry.name,
        settings=entry.parts,
        promise=entry.promise,
        colour=COLOURS[entry.promise],
        picture=image,
        **known,
    )
