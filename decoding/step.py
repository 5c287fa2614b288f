"""Everything that the parts of a decoder may look at in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from .branches import Branches
from .codebook import Codebook
from .drafts import Drafts
from .draws import noisy_argmax
from .errors import DecodingError


@dataclass(frozen=True)
class Uniforms:
    """One step's uniform numbers on [0, 1), float32, drawn for a full window so that no lane shifts another's
    stream."""

    coins: Tensor  # [L, W]: keep or reject a draft
    redraws: Tensor  # [L, W + 1]: draw a new draft
    emission: Tensor  # [L]: draw the committed token


@dataclass
class Step:
    """One verification: D drafts of each lane and the D + 1 target laws that one forward gave.

    Row j of `target_laws` is the law of the lane's j-th unfixed position, computed on the drafts before it;
    the last row follows the last draft. Random numbers are made when first asked for; noise only for the rows
    present.
    """

    drafts: Drafts  # [L, D]
    target_laws: Tensor  # [L, D + 1, V]
    testable: Tensor  # [L, D] bool: a real draft, to be tested
    known: Tensor  # [L, D] bool: a structure or kept token: fed as it is, accepted without a test
    make_noise: Callable[[], Tensor] = field(repr=False)
    make_uniforms: Callable[[], Uniforms] = field(repr=False)
    given_codebook: Codebook | None = field(default=None, repr=False)
    branches: Branches | None = field(default=None, repr=False)  # where drafts are a tree

    @property
    def width(self) -> int:
        return self.drafts.tokens.shape[1]

    @cached_property
    def target_of_drafts(self) -> Tensor:
        """q of each draft: [L, D]."""
        return self._of_drafts(self.target_laws[:, : self.width])

    @cached_property
    def declared_of_drafts(self) -> Tensor:
        """p of each draft, above 0 where it is testable: [L, D]."""
        return self._of_drafts(self.drafts.laws)

    def _of_drafts(self, laws: Tensor) -> Tensor:
        return laws.gather(-1, self.drafts.tokens[..., None]).squeeze(-1)

    @property
    def codebook(self) -> Codebook:
        """The image tokenizer's codebook; DecodingError where the decode was started without one."""
        if self.given_codebook is None:
            raise DecodingError(
                "this decoder compares codes by their codebook rows: it needs the image tokenizer"
            )
        return self.given_codebook

    @cached_property
    def noise(self) -> Tensor:
        """Shared exponential noise of the rows' cells: [L, D + 1, V]."""
        return self.make_noise()

    @cached_property
    def uniforms(self) -> Uniforms:
        return self.make_uniforms()

    @cached_property
    def shared_noise_tokens(self) -> Tensor:
        """What step-by-step decoding draws at each row, were the drafts before it right: [L, D + 1] int64."""
        return noisy_argmax(self.target_laws, self.noise)

    def leading(
        self,
        passed: Tensor,  # [L, D] bool
    ) -> Tensor:
        """How many drafts from the left are accepted: [L] int64. Known tokens pass across; what is no draft
        stops."""
        going = (passed & self.testable) | self.known
        return going.to(torch.int64).cumprod(-1).sum(-1)

    def law_after(self, accepted: Tensor) -> Tensor:
        """Target law of the position that follows `accepted` ([L]) drafts: [L, V]."""
        return self.target_laws[torch.arange(len(accepted), device=accepted.device), accepted]
