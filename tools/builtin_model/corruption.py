"""Wrong input tokens with right targets, without which the model ignores the words.

With clean inputs the first rows of a drawing tell which one it is, and what follows is recalled from them;
sampled, such a model starts anyhow and ends in blobs. With inputs that cannot be trusted it has to ask the
prompt.
"""

from __future__ import annotations

import torch
from torch import Tensor

CLEAN = 0.1  # of the drawings
MOST = 0.8  # at most so many of the tokens, with a prompt
BARE = (0.3, 1.0)  # without one: so that guidance has something to push against
CHANCE = 0.3  # of the wrong tokens are any token; the rest are another drawing's at the same place


def corrupt(tokens: Tensor, bare: Tensor, vocabulary: int, rng: torch.Generator) -> Tensor:
    """tokens [B, cells] int64, bare [B] bool: which have no prompt -> tokens with some replaced."""
    rows, cells = tokens.shape
    share = torch.rand(rows, 1, generator=rng)
    clean = torch.rand(rows, 1, generator=rng) < CLEAN
    low, high = BARE
    share = torch.where(bare[:, None], low + (high - low) * share, MOST * share.masked_fill(clean, 0.0))
    wrong = torch.rand(rows, cells, generator=rng) < share
    other = tokens[torch.randint(rows, (rows,), generator=rng)]
    chance = torch.randint(vocabulary, (rows, cells), generator=rng)
    replacement = torch.where(torch.rand(rows, cells, generator=rng) < CHANCE, chance, other)
    return torch.where(wrong, replacement, tokens)
