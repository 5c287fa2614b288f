"""Trees of drafts on the trained model that ships: its cache after a branch has won, and its pictures."""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    SamplingSettings,
    decode,
    run_to_end,
    same_picture_tree,
    sjd_tree,
)
from jacobi_ar.model_loaders.target import TransformerTarget
from torch import Tensor

from .test_same_picture_builtin import PAIRS, model, step_by_step, tokens


@pytest.mark.parametrize(
    ("window", "siblings", "depth", "guidance"), [(31, 3, 2, 1.0), (31, 2, 4, 1.0), (16, 4, 1, 2.0)]
)
def test_float64_equals_one_token_a_pass(window: int, siblings: int, depth: int, guidance: float) -> None:
    decoder = same_picture_tree(window, siblings, depth)
    ours = tokens(torch.float64, decoder, guidance, PAIRS[guidance][1])
    assert torch.equal(ours, step_by_step(torch.float64, guidance))


def test_float32_equals_one_token_a_pass_on_these_seeds() -> None:
    ours = tokens(torch.float32, same_picture_tree(), 1.0, PAIRS[1.0][1])
    assert torch.equal(ours, step_by_step(torch.float32, 1.0))


class CountedMoves:
    """A target's `move` that counts slots that really move, and may leave them where they are."""

    def __init__(self, target: TransformerTarget, does_it: bool) -> None:
        self.count, self._move, self._does_it = 0, target.move, does_it

    def __call__(self, source: Tensor, destination: Tensor) -> None:
        self.count += int((source != destination).sum())
        if self._does_it:
            self._move(source, destination)


def last_law(target: TransformerTarget, stream: Tensor, first: int) -> Tensor:
    """Logits at the last position of `stream` [1, S], fed from position `first` on."""
    where = torch.arange(first, stream.shape[1])[None]
    visible = torch.arange(stream.shape[1]) <= where[..., None]
    return target.forward(stream[:, first:], where, where, visible)[:, -1]


def laws_after(decoder: Decoder, seed: int, moves: bool = True) -> tuple[Tensor, Tensor, int]:
    """Last logits from the cache that a decode leaves, and from one that is fed its tokens at once; moves."""
    built_in = model(torch.float64)
    grid, prompts = built_in.grids[0], [built_in.encode_prompt("")]
    target, other = built_in.target(grid, 2.0), built_in.target(grid, 2.0)
    target.move = move = CountedMoves(target, moves)  # type: ignore[method-assign]
    with torch.inference_mode():
        result = run_to_end(decode(target, prompts, decoder, SamplingSettings(), [seed]))
        stream = torch.from_numpy(grid.structure())[None].clone()
        stream[:, grid.cell_positions()] = result.tokens.view(1, -1)
        other.prefill(prompts, grid.length)
        return last_law(target, stream, grid.length - 1), last_law(other, stream, 0), move.count


@pytest.mark.parametrize("decoder", [sjd_tree(15), same_picture_tree(15)], ids=lambda d: d.name)
def test_the_cache_is_that_of_the_tokens_after_branches_have_won(decoder: Decoder) -> None:
    left, fresh, moved = laws_after(decoder, 3)
    assert moved > 10
    torch.testing.assert_close(left, fresh, rtol=1e-9, atol=1e-9)


def test_a_cache_whose_branches_are_not_moved_is_another() -> None:
    left, fresh, _ = laws_after(sjd_tree(15), 3, moves=False)
    assert (left - fresh).abs().max() > 1e-3
