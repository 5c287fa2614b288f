"""Where the transformer starts from: embeddings that already know how tokens and drawings resemble each
other.

Learnt from nothing, a word's embedding is told what its drawing looks like by a few gradients an epoch. Here
the words of a name add up, as well as least squares can, to the principal components of the name's drawing;
and tokens lie to each other as their codebook rows do. Training goes on from there with all of it free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from .drawings import Drawing
from .network import Network
from .selection import ANY

RIDGE = 0.1


@torch.no_grad()
def start(
    network: Network,
    tokens: Tensor,  # [N, cells] int64, of the drawings
    about: Sequence[Drawing],
    words: Mapping[str, int],
    codebook: Tensor,  # [V, c] unit rows
    rng: torch.Generator,
) -> None:
    """Set the embeddings and the output of a new network."""
    dim = network.size.dim
    look = torch.randn(codebook.shape[1], dim, generator=rng) / codebook.shape[1] ** 0.5
    network.tok_embeddings.weight.copy_(
        codebook @ look + 0.1 * torch.randn(len(codebook), dim, generator=rng)
    )
    judge = torch.randn(codebook.shape[1], dim, generator=rng) / dim**0.5
    noise = torch.randn(len(codebook), dim, generator=rng)
    network.output.weight.copy_(codebook @ judge + 0.02 * noise)
    features = codebook[tokens].flatten(1)  # [N, cells * c]
    scores = components(features, dim)  # [N, K]
    said = torch.zeros(len(about), len(words))
    for row, drawing in enumerate(about):
        said[row, [words[word] for word in drawing.words]] = 1.0
    own, any_style = said.clone(), said.clone()
    for row, drawing in enumerate(about):
        own[row, words[f"<{drawing.style}>"]] = 1.0
        any_style[row, words[ANY]] = 1.0
    both = torch.cat([own, any_style])
    gram = both.T @ both + RIDGE * torch.eye(len(words))
    found = torch.linalg.solve(gram, both.T @ torch.cat([scores, scores]))  # [words, K]
    weight = 0.05 * torch.randn(len(words), dim, generator=rng)
    weight[:, : found.shape[1]] += found
    weight[0] = 0.0  # padding
    network.text_embeddings.weight.copy_(weight)
    nn.init.eye_(network.text_global.weight)


def components(features: Tensor, most: int) -> Tensor:
    """[N, F] -> principal components [N, K], K at most `most`, whitened by the square root of their spread:
    the large ones count more, and the small ones are still heard."""
    centred = features - features.mean(0)
    left, spread, _ = torch.linalg.svd(centred, full_matrices=False)
    kept = min(most, len(spread))
    scores = left[:, :kept] * spread[:kept].sqrt()
    return scores / scores.std(0).mean().clamp_min(1e-8)
