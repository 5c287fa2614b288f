"""What the model itself says of a picture: bits a token."""

from __future__ import annotations

import numpy as np
import torch

from .subject import Condition, Subject

_BATCH = 8


@torch.inference_mode()
def bits_a_token(subject: Subject, condition: Condition, tokens: np.ndarray, first: int = 0) -> np.ndarray:
    """-log2 of the guided law (no temperature, no top-k: always finite) at each token, mean over a picture.

    tokens: [R, cells], of the pictures numbered `first` … (which says their prompts). Returns [R] float64.
    Equal laws have equal means, and a mean of a few hundred pictures is sharp: pictures too likely or too
    unlikely show at once. (Equal means alone are no proof of equal laws.)
    """
    parts = [
        _bits(
            subject, condition, tokens[i : i + _BATCH], range(first + i, first + min(i + _BATCH, len(tokens)))
        )
        for i in range(0, len(tokens), _BATCH)
    ]
    return np.concatenate(parts)


def _bits(subject: Subject, condition: Condition, tokens: np.ndarray, pictures: range) -> np.ndarray:
    logits = guided_logits(subject, condition, tokens, pictures)
    chosen = torch.from_numpy(tokens).long().to(logits.device)[..., None]
    surprise = -logits.double().log_softmax(-1).gather(-1, chosen)[..., 0]
    return (surprise.mean(1) / np.log(2)).cpu().numpy()


@torch.inference_mode()
def peakedness(subject: Subject, condition: Condition, tokens: np.ndarray) -> dict[str, float]:
    """How certain the model is along its own pictures [R, cells]: mean entropy of the guided laws in bits,
    and the share of tokens whose law has one above 0.9. Decoders that guess are fast where laws are
    peaked."""
    entropies, peaked = [], []
    for first in range(0, len(tokens), _BATCH):
        part = tokens[first : first + _BATCH]
        laws = guided_logits(subject, condition, part, range(first, first + len(part))).softmax(-1)
        entropies.append((-(laws * laws.clamp_min(1e-30).log2()).sum(-1)).flatten())
        peaked.append((laws.amax(-1) > 0.9).float().flatten())
    return {
        "entropy in bits": float(torch.cat(entropies).mean()),
        "share above 0.9": float(torch.cat(peaked).mean()),
    }


def guided_logits(
    subject: Subject, condition: Condition, tokens: np.ndarray, pictures: range
) -> torch.Tensor:
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
