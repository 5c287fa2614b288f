"""A family's network: the shared transformer, and what turns prompts and tokens into its inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..decoding.grid import TokenGrid
from .checkpoint import Checkpoint
from .denoiser import Denoiser
from .errors import PromptError
from .linear import linear
from .rotary import Turns
from .strict import Source, assign
from .transformer import Transformer, TransformerConfig


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt made ready for one family. `notes` are for the user's eyes: what was ignored or cut off."""

    family: str
    text: str
    tensors: Mapping[str, Tensor] = field(default_factory=dict)  # the family's own, on the CPU
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PromptRows:
    """Prompts as the transformer reads them: a block of conditional rows, with guidance as many without."""

    embeddings: Tensor  # [R, T, dim]
    visible: Tensor  # [R, T] bool, False at padding (on the left)
    constant: Tensor | None = None  # [R, 1, dim], added to the embedding of every later input


class ImageTransformer(nn.Module, ABC):
    """A family's network: the shared transformer, and the modules around it.

    `device` is the host's to set (its model manager keeps the place of the weights there).
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: int,
        operations: Any,
        *,
        inputs: int | None = None,  # rows of the input table, where that holds more than image tokens
        **factory: Any,
    ) -> None:
        super().__init__()
        self.device = factory.get("device")
        self.vocabulary = vocabulary
        self.tok_embeddings = operations.Embedding(inputs or vocabulary, config.dim, **factory)
        self.transformer = Transformer(config, operations, **factory)
        self.output = operations.Linear(config.dim, vocabulary, bias=False, **factory)
        self.denoiser: Denoiser | None = None  # where the weights include one

    def embed(self, tokens: Tensor) -> Tensor:
        """Input ids [R, N] -> [R, N, dim]."""
        return self.tok_embeddings(tokens)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [R, N, dim] -> logits of the image vocabulary [R, N, V], in the model's type."""
        return linear(self.output, hidden)

    @abstractmethod
    def prompt_rows(
        self,
        prompts: Sequence[Prompt],
        grid: TokenGrid,
        guided: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> PromptRows:
        """Embed the prompts; `guided` appends the unconditional rows."""

    @abstractmethod
    def turns(self, grid: TokenGrid, visible: Tensor, dtype: torch.dtype) -> Turns:
        """Rotary positions of prompts, whose padding `visible` [R, T] tells, and of the stream; `dtype` is
        the float type of the angles."""


def fill(
    network: ImageTransformer,
    checkpoint: Checkpoint,
    names: Mapping[str, Source],
    *,
    device: torch.device,
    dtype: torch.dtype,
    ignore: Callable[[str], bool] = lambda name: False,
) -> None:
    """Give a network that was built on the meta device the tensors of `checkpoint` (see `assign`), ready to
    run."""
    assign(network, checkpoint, names, device=device, dtype=dtype, ignore=ignore)
    network.device = device
    network.eval()


def check_family(prompts: Sequence[Prompt], family: str) -> None:
    """A prompt holds what one family reads; another would misread it."""
    for prompt in prompts:
        if prompt.family != family:
            raise PromptError(
                f'the prompt "{prompt.text}" was encoded for {prompt.family}, the model is {family}: '
                "connect this model to Encode AR Prompt, and the prompt from there"
            )
