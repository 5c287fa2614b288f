"""Initialisers: (token, law) for positions never tried before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from .drafts import Drafts
from .draws import inverse_cdf


@dataclass(frozen=True)
class Frontier:
    """What an initialiser may look at: the right edge of each lane's tried positions.

    `left` is the token (draft or committed) of the nearest cell before the new positions, `above` the token
    of the cell right above each new position (that of `left` in the first row), `last_law` the last target
    law of the lane.
    """

    left: Tensor  # [L] int64
    above: Tensor  # [L, M] int64
    last_law: Tensor  # [L, V]
    uniforms: Tensor | None  # [L, M] on [0, 1), None where the initialiser does not draw


class Initialiser(Protocol):
    """Fills M new positions of each lane. `draws` says whether it needs uniform numbers."""

    name: str
    draws: bool

    def initialise(self, frontier: Frontier) -> Drafts: ...


@dataclass(frozen=True)
class UniformToken:
    """Any code, each equally likely, declared as such (SJD-PAC's pads; more acceptance than a one-hot
    law)."""

    name: ClassVar[str] = "uniform"
    draws: ClassVar[bool] = True

    def initialise(self, frontier: Frontier) -> Drafts:
        assert frontier.uniforms is not None
        vocabulary = frontier.last_law.shape[-1]
        tokens = (frontier.uniforms * vocabulary).to(torch.int64)
        law = frontier.last_law.new_full((1, 1, vocabulary), 1.0 / vocabulary)
        return Drafts(tokens, law.expand(*tokens.shape, vocabulary))


@dataclass(frozen=True)
class CopyLeft:
    """The token to the left, repeated; certain of it (SJD's horizontal repeat)."""

    name: ClassVar[str] = "copy left"
    draws: ClassVar[bool] = False

    def initialise(self, frontier: Frontier) -> Drafts:
        return _certain(frontier.left[:, None].expand_as(frontier.above), frontier.last_law)


@dataclass(frozen=True)
class CopyAbove:
    """The token above; certain of it (SJD's vertical repeat)."""

    name: ClassVar[str] = "copy above"
    draws: ClassVar[bool] = False

    def initialise(self, frontier: Frontier) -> Drafts:
        return _certain(frontier.above, frontier.last_law)


@dataclass(frozen=True)
class NeighbourLaw:
    """A draw from the law of the neighbour to the left, which is declared (SJD's horizontal sampling)."""

    name: ClassVar[str] = "neighbour's law"
    draws: ClassVar[bool] = True

    def initialise(self, frontier: Frontier) -> Drafts:
        assert frontier.uniforms is not None
        laws = frontier.last_law[:, None].expand(-1, frontier.uniforms.shape[1], -1)
        return Drafts(inverse_cdf(laws, frontier.uniforms), laws)


def _certain(
    tokens: Tensor,  # [L, M]
    like: Tensor,  # [L, V]
) -> Drafts:
    return Drafts(tokens, F.one_hot(tokens, like.shape[-1]).to(like.dtype))


INITIALISERS: dict[str, Initialiser] = {
    part.name: part for part in (UniformToken(), CopyLeft(), CopyAbove(), NeighbourLaw())
}
