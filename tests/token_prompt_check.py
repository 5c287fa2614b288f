"""The comparison that every family with prompts of token ids passes: logits against a reference's, in all
ways in which decoders ask for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.token_prompts import TokenPromptModel
from torch import Tensor, nn

from .reference import (
    Logits,
    additive,
    logits_in_windows,
    logits_out_of_order,
    reference_out_of_order,
    stream_of,
)


def stream_logits(network: nn.Module, head: Tensor, first: int) -> Logits:
    """Image logits of transformers' language model `network`; `first` is its id of code 0."""

    def logits(prompt: list[int], stream: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        ids = torch.cat([torch.tensor(prompt), torch.where(stream < len(head), stream + first, stream)])
        hidden = network(
            input_ids=ids[None], position_ids=positions[None], attention_mask=additive(mask), use_cache=False
        ).last_hidden_state
        return hidden[0] @ head.T

    return logits


def assert_same_logits(
    model: TokenPromptModel, grid: TokenGrid, texts: Sequence[str], logits: Logits, guidance: float
) -> None:
    """With guidance and without; step by step, in windows, and rows out of order (grids of 4 rows of 4)."""
    prompts = [model.encode_prompt(text) for text in texts]
    rows = model.transformer.prompt_ids(prompts, grid, guided=True)
    draw = torch.Generator().manual_seed(1)
    stream = stream_of(grid, torch.randint(model.vocabulary, (len(texts), grid.cells), generator=draw))
    whole = []
    for row, one in zip(rows, stream.repeat(2, 1), strict=True):
        count = len(row) + grid.length - 1
        mask = torch.ones(count, count, dtype=torch.bool).tril()
        whole.append(logits(row, one[:-1], torch.arange(count), mask)[len(row) - 1 :])
    conditional, unconditional = torch.stack(whole).chunk(2)
    close = {"rtol": 1e-4, "atol": 1e-4}
    for scale in (1.0, guidance):
        expected = unconditional + scale * (conditional - unconditional)
        for windows in ([grid.length], [1] * (grid.length - 1), [4, 1, 7, 9]):
            got = logits_in_windows(model, grid, prompts, stream, scale, windows)
            torch.testing.assert_close(got, expected, **close)
    got = logits_out_of_order(model, grid, prompts[0], stream[0], guidance)
    c, u = (reference_out_of_order(logits, row, stream[0]) for row in (rows[0], rows[len(texts)]))
    torch.testing.assert_close(got, u + guidance * (c - u), **close)
