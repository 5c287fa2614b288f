"""The settings of a run: the widgets of Generate Image Tokens with every "auto" resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real

from torch import Tensor

from ..decoding import Decoder, SamplingSettings, TokenGrid, image_seeds
from ..decoding.verifiers import GreedyMatch
from ..model_loaders.errors import GridError
from ..model_loaders.image_model import ImageModel
from .fixed_tokens import given_words
from .inputs import number, whole_number

MOST_SEED, MOST_PICTURES, MOST_SIDE = 2**64 - 1, 64, 1024
AUTO = -1  # of these, beside the least and the most that may be chosen
RANGES = {"guidance": (0.0, 30.0), "temperature": (0.0, 10.0), "top_k": (0, 1_000_000), "top_p": (0.01, 1.0)}


@dataclass(frozen=True)
class RunSettings:
    """Grid, guidance, sampling and a seed for each picture; `automatic` names what the model chose.

    kept: [B, rows, cols] int64, tokens that are given, -1 where to draw; None where none is.
    """

    grid: TokenGrid
    guidance: float
    sampling: SamplingSettings
    seeds: tuple[int, ...]
    automatic: frozenset[str] = frozenset()
    kept: Tensor | None = field(default=None, compare=False)

    def lines(self) -> list[str]:
        law = {
            "guidance": f"{self.guidance:g}",
            "temperature": f"{self.sampling.temperature:g}",
            "top-k": self.sampling.top_k or "off",
        }
        if self.sampling.top_p < 1:
            law["top-p"] = f"{self.sampling.top_p:g}"
        facts = [f"{name} {value}" for name, value in law.items() if name not in self.automatic]
        auto = [f"{name} {value}" for name, value in law.items() if name in self.automatic]
        if auto:
            facts.append(f"auto: {', '.join(auto)}")
        grid = f"grid {self.grid.rows} x {self.grid.cols}" + (" (auto)" if "grid" in self.automatic else "")
        given = [] if self.kept is None else sorted({given_words(grid) for grid in self.kept} - {""})
        return [
            " · ".join(facts),
            f"{grid} · {seed_words(self.seeds)}",
            *(["given: " + "; ".join(given)] if given else []),
        ]


def seed_words(seeds: Sequence[int]) -> str:
    """For example: seed 7; seeds 7, 8; seeds 7 to 15."""
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:  # not where they begin at 0 again
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def resolve(
    model: ImageModel,
    seed: int,
    batch_size: int,
    guidance: float,
    sampling: dict[str, float],
    shape: tuple[int, int],
) -> RunSettings:
    """The model's own values stand in for auto: -1, of rows and columns 0.

    ValueError for what no widget holds; it may have come by wire, which ComfyUI holds against no range.
    sampling: temperature, top_k, top_p. shape: rows, columns; where one is given, the other follows from the
    first grid of the model that has it.
    """
    whole_number("seed", seed, 0, MOST_SEED)
    whole_number("batch_size", batch_size, 1, MOST_PICTURES)
    for side, tokens in zip(("rows", "columns"), shape, strict=True):
        whole_number(side, tokens, 0, MOST_SIDE, " (0: what the model was made for)")
    law = {"guidance": guidance, **sampling}
    automatic = {name for name, value in law.items() if isinstance(value, Real) and value == AUTO}
    for name, value in law.items():
        if name not in automatic:
            check = whole_number if name == "top_k" else number
            check(name, value, *RANGES[name], ", or -1 (the model's own)")
    law |= {name: getattr(model.defaults, name) for name in automatic}
    open_grid = frozenset() if any(shape) else frozenset({"grid"})
    return RunSettings(
        grid=chosen_grid(model, shape),
        guidance=law.pop("guidance"),
        sampling=SamplingSettings(**law),
        seeds=tuple(image_seeds(seed, batch_size)),
        automatic=frozenset(name.replace("_", "-") for name in automatic) | open_grid,
    )


def for_decoder(settings: RunSettings, decoder: Decoder) -> RunSettings:
    """Greedy decoding is temperature 0, whatever the widgets say: the report then says so too."""
    if not isinstance(decoder.verifier, GreedyMatch):
        return settings
    automatic = settings.automatic - {"top-k", "top-p"} | {"temperature"}
    return replace(settings, sampling=SamplingSettings(temperature=0.0), automatic=automatic)


def grid_warning(model: ImageModel, settings: RunSettings) -> str:
    """What to set where the grid may be another than the model was trained on; else empty."""
    return model.grid_warning(settings.grid, "grid" not in settings.automatic)


def chosen_grid(model: ImageModel, shape: tuple[int, int]) -> TokenGrid:
    """The grid of these widgets; a GridError that says what to set where the model does not make it."""
    try:
        return model.grid(*full_shape(model, shape))
    except GridError as error:
        usual = model.grids[0]
        others = "to one of these, or both to 0 for" if len(model.grids) > 1 else "to 0 for"
        raise GridError(f"{error}. Set rows and columns {others} {usual.rows} x {usual.cols}.") from None


def full_shape(model: ImageModel, shape: tuple[int, int]) -> tuple[int, int]:
    rows, cols = shape
    if rows and cols:
        return shape
    for grid in model.grids:
        if rows in (0, grid.rows) and cols in (0, grid.cols):
            return grid.rows, grid.cols
    return rows or model.grids[0].rows, cols or model.grids[0].cols
