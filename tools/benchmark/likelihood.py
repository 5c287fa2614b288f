"""What the model itself says of pictures: bits a token, and how certain it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ...decoding.sampling import entropy
from .subject import Condition, Subject

_BATCH = 8


@torch.inference_mode()
def bits_a_token(subject: Subject, condition: Condition, tokens: np.ndarray, first: int = 0) -> np.ndarray:
    """-log2 of the guided law (no temperature, no top-k: always finite) at each token, mean over a picture.

    tokens: [R, cells], of the pictures numbered `first` … (which says their prompts). Returns [R] float64.
    Equal laws have equal means, and a mean of a few hundred pictures is sharp: pictures too likely or too
    unlikely show at once. (Equal means alone are no proof of equal laws.)
    """
    found = []
    for part, logits in _parts(subject, condition, tokens, first):
        chosen = torch.from_numpy(part).long().to(logits.device)[..., None]
        surprise = -logits.double().log_softmax(-1).gather(-1, chosen)[..., 0]
        found.append((surprise.mean(1) / np.log(2)).cpu().numpy())
    return np.concatenate(found)


@torch.inference_mode()
def peakedness(subject: Subject, condition: Condition, tokens: np.ndarray) -> dict[str, float]:
    """How certain the model is along its own pictures [R, cells]: mean entropy of the guided laws in bits,
    and the share of tokens whose law has one above 0.9. Decoders that guess are fast where laws are
    peaked."""
    laws = (logits.softmax(-1) for _, logits in _parts(subject, condition, tokens))
    seen = [(entropy(law).mean(1), (law.amax(-1) > 0.9).float().mean(1)) for law in laws]
    entropies, peaked = (torch.cat(figures).mean() for figures in zip(*seen, strict=True))
    return {"entropy": float(entropies), "peaked": float(peaked)}


def _parts(
    subject: Subject, condition: Condition, tokens: np.ndarray, first: int = 0
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """A few pictures at a time, with the logits at their cells; the first of all is number `first`."""
    for i in range(0, len(tokens), _BATCH):
        part = tokens[i : i + _BATCH]
        yield part, guided_logits(subject, condition, part, range(first + i, first + i + len(part)))


def guided_logits(subject: Subject, condition: Condition, tokens: np.ndarray, pictures: range) -> Tensor:
    """What the model says at each cell of pictures [B, cells] given the cells before it, [B, cells, V]."""
    grid, device, count = subject.grid, subject.device, len(tokens)
    cells = torch.from_numpy(grid.cell_positions())
    stream = torch.from_numpy(grid.structure()).expand(count, -1).clone()  # [B, S]
    stream[:, cells] = torch.from_numpy(tokens).long()
    target = subject.target(condition)
    prompts = [subject.model.encode_prompt(text) for text in subject.texts(condition, pictures)]
    first = target.prefill(prompts, grid.length)[:, None]  # [B, 1, V]
    places = torch.arange(grid.length, device=device).expand(count, -1)
    causal = torch.ones(grid.length, grid.length, dtype=torch.bool, device=device).tril()
    after = target.forward(stream.to(device), places, places, causal.expand(count, -1, -1))  # [B, S, V]
    return torch.cat([first, after], 1)[:, cells.to(device)]  # of each cell: what stands one before it
