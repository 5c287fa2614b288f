"""Families whose prompt is a list of token ids of the language model itself.

Prompts of a batch, and the unconditional rows of guidance, have their own lengths: shorter rows are padded
on the left, hidden from everything, and count their positions from their own first token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from ..decoding.grid import TokenGrid
from .checkpoint import Checkpoint
from .errors import PromptError
from .image_model import ImageModel
from .image_transformer import ImageTransformer, Prompt, PromptRows, check_family, fill
from .rotary import Turns, line_turns
from .strict import Source
from .transformer import TransformerConfig

MOST_PROMPT_TOKENS = 4096  # memory of the prefill grows with the square


class PromptLayout(Protocol):
    """How a family writes prompts: ids of all tokens before the first image token, header included."""

    def conditional(self, text: str, grid: TokenGrid) -> list[int]: ...

    def unconditional(self, text: str, grid: TokenGrid) -> list[int]: ...


class TokenPromptTransformer(ImageTransformer):
    """The network of such a family. `first_code` is the id that the language model gives to code 0.

    Input ids of the stream below the codebook size are codes, the others (row ends) ids of the language
    model, and prompts hold ids of the language model only.
    """

    def __init__(
        self,
        family: str,
        config: TransformerConfig,
        vocabulary: int,
        layout: PromptLayout,
        operations: Any,
        *,
        inputs: int,
        first_code: int = 0,
        rope_base: float = 10000.0,
        **factory: Any,
    ) -> None:
        super().__init__(config, vocabulary, operations, inputs=inputs, **factory)
        self.family = family
        self.layout = layout
        self.first_code = first_code
        self.rope_base = rope_base

    def embed(self, tokens: Tensor) -> Tensor:
        return self.tok_embeddings(torch.where(tokens < self.vocabulary, tokens + self.first_code, tokens))

    def prompt_ids(self, prompts: Sequence[Prompt], grid: TokenGrid, guided: bool) -> list[list[int]]:
        """Ids of each row, conditional rows first."""
        check_family(prompts, self.family)
        rows = self._ids(self.layout.conditional, prompts, grid)
        if guided:
            rows += self._ids(self.layout.unconditional, prompts, grid)
        longest = max(map(len, rows))
        if longest > MOST_PROMPT_TOKENS:
            raise PromptError(
                f"the prompt has {longest} tokens; more than {MOST_PROMPT_TOKENS} are refused, for no model "
                "here was trained on such long ones. Shorten it"
            )
        return rows

    @staticmethod
    def _ids(
        write: Callable[[str, TokenGrid], list[int]], prompts: Sequence[Prompt], grid: TokenGrid
    ) -> list[list[int]]:
        """One row a prompt; each text is written once, for a batch has mostly one."""
        written = {text: write(text, grid) for text in {prompt.text for prompt in prompts}}
        return [written[prompt.text] for prompt in prompts]

    def prompt_rows(
        self,
        prompts: Sequence[Prompt],
        grid: TokenGrid,
        guided: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> PromptRows:
        rows = self.prompt_ids(prompts, grid, guided)
        longest = max(map(len, rows))
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows], device=device)  # [R, T]
        lengths = torch.tensor([len(row) for row in rows], device=device)
        visible = torch.arange(longest, device=device) >= longest - lengths[:, None]
        return PromptRows(self.tok_embeddings(ids).to(dtype), visible)

    def turns(self, grid: TokenGrid, visible: Tensor, dtype: torch.dtype) -> Turns:
        return line_turns(visible, grid.length, self.transformer.config.head_dim, self.rope_base, dtype)


def load_network(
    checkpoint: Checkpoint,
    family: str,
    config: TransformerConfig,
    layout: PromptLayout,
    names: Mapping[str, Source],
    *,
    codes: tuple[int, int],
    inputs: int,
    rope_base: float,
    ignore: Callable[[str], bool],
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
) -> TokenPromptTransformer:
    """The network with the tensors of `checkpoint` as `names` and `ignore` tell (see `assign`).

    `codes` are the language model's ids of codes, the first and one past the last; `inputs` rows its table.
    """
    network = TokenPromptTransformer(
        family,
        config,
        codes[1] - codes[0],
        layout,
        operations,
        inputs=inputs,
        first_code=codes[0],
        rope_base=rope_base,
        device=torch.device("meta"),
        dtype=dtype,
    )
    fill(network, checkpoint, names, device=device, dtype=dtype, ignore=ignore)
    return network


class TokenPromptModel(ImageModel):
    """A model of such a family. What a prompt becomes depends on the grid, so the text is kept until then."""

    transformer: TokenPromptTransformer

    def encode_prompt(self, text: str) -> Prompt:
        notes = [] if text.strip() else ["empty prompt: the picture is left to the model"]
        return Prompt(self.family, text, notes=tuple(notes))

    def prompt_columns(self, prompts: Sequence[Prompt], grid: TokenGrid, guidance: float) -> int:
        return max(map(len, self.transformer.prompt_ids(prompts, grid, guidance != 1)))
