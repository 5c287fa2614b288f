"""From guided logits to the law that tokens are drawn from: one function for drafts and targets alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import DecodingError

SMALLEST_TEMPERATURE = 1e-6


@dataclass(frozen=True)
class SamplingSettings:
    """The sampling chain: temperature, top-k, top-p, softmax, in this order.

    temperature: 0 .. 100; 0, and anything too small to divide by, puts all mass on the likeliest token (the
        first one in a tie).
    top_k: 0 .. V; 0 is off. Tokens that tie with the k-th stay.
    top_p: above 0, up to 1; 1 is off. The token that crosses p stays, and so do its ties.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise DecodingError(f"temperature must lie in 0 to 100, got {self.temperature}")
        if self.top_k < 0:
            raise DecodingError(f"top_k must be 0 (off) or a number of tokens, got {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise DecodingError(f"top_p must lie above 0 and be at most 1 (off), got {self.top_p}")


def warp(
    logits: Tensor,  # [..., V] float32 or float64, guided
    settings: SamplingSettings,
) -> Tensor:
    """Law [..., V] of the next token, same dtype as the logits; rows sum to 1."""
    vocabulary = logits.shape[-1]
    if settings.temperature < SMALLEST_TEMPERATURE:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    if settings.temperature != 1.0:
        # Below their maximum: the quotient may overflow to -inf, never to inf.
        logits = (logits - logits.amax(-1, keepdim=True)) / settings.temperature
    if settings.top_k == 1:
        threshold = logits.amax(-1, keepdim=True)
        logits = logits.masked_fill(logits < threshold, -torch.inf)
    elif 0 < settings.top_k < vocabulary:
        threshold = logits.topk(settings.top_k, dim=-1, sorted=False).values.amin(-1, keepdim=True)
        logits = logits.masked_fill(logits < threshold, -torch.inf)
    if settings.top_p < 1.0:
        ranked = logits.sort(-1, descending=True).values
        mass_before = ranked.softmax(-1).cumsum(-1).roll(1, -1)
        mass_before[..., 0] = 0.0
        last = (mass_before < settings.top_p).sum(-1, keepdim=True) - 1
        logits = logits.masked_fill(logits < ranked.gather(-1, last), -torch.inf)
    return logits.softmax(-1)


def entropy(
    laws: Tensor,  # [..., V]
) -> Tensor:
    """In bits, [...]: 0 where one token is certain, n where it is open between 2^n equally likely ones."""
    smallest = torch.finfo(laws.dtype).tiny  # 0 log 0 is 0
    return -(laws * laws.clamp(min=smallest).log2()).sum(-1)
