"""Drawing tokens from laws, with the random numbers given."""

from __future__ import annotations

import torch
from torch import Tensor


def inverse_cdf(
    law: Tensor,  # [..., V] float, non-negative, not necessarily normalised
    uniform: Tensor,  # [...] in [0, 1)
) -> Tensor:
    """Token [...] int64 at which the cumulated law first exceeds uniform * total; never one without mass.

    Example: law (0.2, 0, 0.8), uniform 0.2 -> token 2; uniform 0.19 -> token 0.
    """
    cumulated = law.cumsum(-1)
    total = cumulated[..., -1]
    # Rounding may lift uniform * total to the total itself, past the last token that has mass.
    level = torch.minimum(uniform.to(law.dtype) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulated, level[..., None].contiguous(), right=True).squeeze(-1)


def noisy_argmax(
    law: Tensor,  # [..., V]
    noise: Tensor,  # [..., V] exponential variates above 0
) -> Tensor:
    """Token [...] int64 that wins the exponential race: a draw from the law, the same for the same noise."""
    return (law / noise).argmax(-1)


def residual(
    target_law: Tensor,  # q [..., V]
    draft_law: Tensor,  # p [..., V]
) -> Tensor:
    """max(q - p, 0), the law (not normalised) of a token whose draft was rejected; q where rounding leaves no
    mass.

    Leviathan et al. 2023, Chen et al. 2023, in this field's letters: p the draft's law, q the target's.
    """
    excess = (target_law - draft_law).clamp_(min=0.0)
    return torch.where(excess.sum(-1, keepdim=True) > 0.0, excess, target_law)


def keeps(
    tokens: Tensor,  # [..., ] int64 drafts
    target_law: Tensor,  # q [..., V]
    draft_law: Tensor,  # p [..., V], the law that the draft was drawn from
    coin: Tensor,  # [...] uniform on [0, 1)
) -> Tensor:
    """True where the exact test keeps the draft x: probability min(1, q(x) / p(x)), written without a
    division."""
    chosen = tokens[..., None]
    q, p = target_law.gather(-1, chosen).squeeze(-1), draft_law.gather(-1, chosen).squeeze(-1)
    return coin.to(q.dtype) * p < q
