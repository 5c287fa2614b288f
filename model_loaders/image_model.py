"""What the loaders hand out: a model that takes prompts and answers for a run of decoding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..decoding.grid import TokenGrid
from .denoising_target import DenoisingTarget
from .errors import GridError
from .image_transformer import ImageTransformer, Prompt
from .target import TransformerTarget, whole_steps

MOST_SHOWN = 6  # sizes in a message


@dataclass(frozen=True)
class SamplingDefaults:
    """What the reference implementation samples with."""

    guidance: float
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


class ImageModel(ABC):
    """One loaded model: weights, prompts, grids and the settings it was made for."""

    family: str
    tokenizer_kind: str

    def __init__(
        self,
        name: str,
        transformer: ImageTransformer,
        dtype: torch.dtype,
        grids: Sequence[TokenGrid],
        defaults: SamplingDefaults,
        prefix: int = 0,
    ) -> None:
        self.name = name
        self.transformer = transformer
        self.dtype = dtype  # of activations and cache
        self.grids = list(grids)
        self.defaults = defaults
        self.prefix = prefix  # columns that every prompt takes in the cache
        self.vocabulary = transformer.vocabulary

    @abstractmethod
    def encode_prompt(self, text: str) -> Prompt:
        """Text -> prompt; PromptError where the text cannot be taken."""

    def grid(self, rows: int, cols: int) -> TokenGrid:
        """The offered grid of that size."""
        for grid in self.grids:
            if (grid.rows, grid.cols) == (rows, cols):
                return grid
        near = sorted(self.grids, key=lambda g: abs(g.rows - rows) + abs(g.cols - cols))
        shown = self.grids if len(near) <= MOST_SHOWN else near[:MOST_SHOWN]
        sizes = ", ".join(f"{g.rows} x {g.cols}" for g in shown)
        among = "it makes" if shown is self.grids else f"of the {len(near)} that it makes, the nearest are"
        raise GridError(f"{self.name} does not make grids of {rows} x {cols} tokens; {among} {sizes}")

    def grid_words(self) -> str:
        """What a person should know of the grid; empty where the weights leave nothing open."""
        return ""

    def grid_warning(self, grid: TokenGrid, chosen: bool) -> str:
        """Why pictures of this grid may come out poor; empty where nothing is wrong. chosen: by a person."""
        return ""

    def target(
        self, grid: TokenGrid, guidance: float, device: torch.device | str | None = None
    ) -> TransformerTarget:
        """The model for one run of decoding, computing on `device` (default: where the weights are)."""
        network = self.transformer
        place = torch.device(device or next(network.parameters()).device)
        if network.denoiser is not None:
            return DenoisingTarget(network, network.denoiser, grid, guidance, self.dtype, place)
        return TransformerTarget(network, grid, guidance, self.dtype, place)

    def prompt_columns(self, prompts: Sequence[Prompt], grid: TokenGrid, guidance: float) -> int:
        """Columns that these prompts take in the cache of a run."""
        return self.prefix

    def cache_bytes(self, prompts: Sequence[Prompt], grid: TokenGrid, guidance: float, slots: int) -> int:
        """Size of the cache of a run of these prompts."""
        config = self.transformer.transformer.config
        rows = len(prompts) * (1 if guidance == 1 else 2)
        columns = whole_steps(whole_steps(self.prompt_columns(prompts, grid, guidance)) + slots)
        return 2 * config.layers * rows * config.kv_heads * columns * config.head_dim * self.dtype.itemsize

    @property
    def weight_bytes(self) -> int:
        return sum(p.numel() * p.element_size() for p in self.transformer.parameters())
