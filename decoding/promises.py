"""What each combination of parts promises, and which combinations are refused. The proofs are in
docs/promises.md."""

from __future__ import annotations

from enum import Enum

from .errors import DecodingError
from .redrafters import Redrafter
from .verifiers import Verifier


class Promise(str, Enum):
    """What a decoder's picture has to do with step-by-step decoding's."""

    SAME_PICTURE = "same picture"
    SAME_DISTRIBUTION = "same distribution"
    APPROXIMATE = "approximate"

    def __str__(self) -> str:
        return self.value

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Promise.SAME_PICTURE: "For a seed, one-token-a-pass decoding's picture, up to floating-point rounding.",
    Promise.SAME_DISTRIBUTION: "Pictures from exactly the model's distribution, another one for each seed.",
    Promise.APPROXIMATE: "Pictures from a distribution close to the model's, not the same.",
}

# The exact test needs a draft whose declared law is the law it was drawn from, given everything to its left.
_HONEST_DRAWS = ("fresh", "maximal coupling", "shared noise")


def promise_of(verifier: Verifier, redrafter: Redrafter) -> Promise:
    """The promise of a combination; DecodingError where a part would silently break another's."""
    if verifier.name in ("shared-noise match", "greedy match"):
        return Promise.SAME_PICTURE  # commits AR's own draw whatever the drafts were
    if verifier.name == "exact token test":
        if redrafter.draw not in _HONEST_DRAWS:
            raise DecodingError(
                f"the exact token test cannot follow {redrafter.draw!r} draws: their declared law is not the "
                "law they were drawn from, so the pictures would be biased without notice. Choose fresh, "
                "maximal coupling or shared noise."
            )
        return Promise.SAME_DISTRIBUTION
    raise DecodingError(f"no promise is known for the verifier {verifier.name!r}")
