"""What each combination of parts promises, and which combinations are refused. The proofs are in
docs/promises.md."""

from __future__ import annotations

from enum import Enum

import numpy as np

from .block import BlockTest
from .denoising import GaussianNoise
from .errors import DecodingError
from .initialisers import Initialiser
from .lanes import NOTHING
from .ratios import PlainRatio
from .redrafters import Redrafter
from .rows import RowParallel
from .schedules import RasterWindow, Schedule
from .semantics import SemanticsVerification
from .tree import TreeWindow
from .tree_verifiers import TreeMatch, TreeTest
from .verifiers import GreedyMatch, SharedNoiseMatch, TokenTest, Verifier


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
    Promise.SAME_PICTURE: "The picture that decoding one token a pass gives for the seed, up to rounding.",
    Promise.SAME_DISTRIBUTION: "Pictures from exactly the model's distribution, another one for each seed.",
    Promise.APPROXIMATE: "Pictures from a distribution close to the model's, not the same.",
}


def promise_of(verifier: Verifier, redrafter: Redrafter, schedule: Schedule) -> Promise:
    """The promise of a combination; DecodingError where a part would silently break another's."""
    _check_tree(verifier, schedule)
    promise = _promise_in_raster_order(verifier, redrafter)
    if isinstance(schedule, RowParallel) and schedule.lower != NOTHING:
        return Promise.APPROXIMATE  # rows below the frontier commit without the rest of the row above them
    return promise


def check_start(initialiser: Initialiser, verifier: Verifier, schedule: Schedule) -> None:
    """Refuse drafts that begin as noise where a step does not stop in front of them."""
    if not isinstance(initialiser, GaussianNoise):
        return
    if not isinstance(schedule, RasterWindow) or isinstance(schedule, TreeWindow):
        raise DecodingError(
            "drafts that begin as noise need a raster window: trees and parallel rows feed drafts as tokens"
        )
    if isinstance(verifier, BlockTest):
        raise DecodingError(
            "drafts that begin as noise cannot stand before the block test: it weighs the whole window, of "
            "which the part under noise has no law of the model's"
        )


def promise_given(
    promise: Promise,
    given: np.ndarray,  # [B, cells] bool: tokens that are given, not decoded
) -> Promise:
    """The promise that is left where some tokens are given.

    Each free token is drawn from its law given all tokens before it. Where only a first part of the picture
    is given, that is the model's law of the rest. A token given behind a free one should have changed the
    law of the free one, which no causal model can tell.
    """
    behind_free = given & np.logical_or.accumulate(~given, axis=1)
    return Promise.APPROXIMATE if behind_free.any() else promise


def _check_tree(verifier: Verifier, schedule: Schedule) -> None:
    """Refuse a tree of drafts before a verifier that does not read it, and the other way round."""
    tests_trees = isinstance(verifier, (TreeTest, TreeMatch))
    if tests_trees and not isinstance(schedule, TreeWindow):
        raise DecodingError(
            f"the {verifier.name} needs a tree of drafts, which grows in a raster window alone: the rows of "
            "the other schedules draft one chain each"
        )
    if isinstance(schedule, TreeWindow) and not tests_trees:
        raise DecodingError(f"a tree of drafts cannot stand before the {verifier.name}: {_no_tree(verifier)}")


def _no_tree(verifier: Verifier) -> str:
    """Why a verifier cannot test siblings."""
    if isinstance(verifier, BlockTest):
        return "it weighs one whole chain, and no exact rule is known for chains that share their beginnings"
    if isinstance(verifier, SemanticsVerification):
        return "it accepts runs of one chain, parts of them untested, and cannot say which sibling they mean"
    if isinstance(verifier, TokenTest) and not isinstance(verifier.ratio, PlainRatio):
        return (
            "its relaxed ratio keeps more than the draft's own share, and what that leaves for the siblings "
            "is not defined"
        )
    return "it would see the first siblings only; take the tree's own token test or shared-noise match"


def _promise_in_raster_order(verifier: Verifier, redrafter: Redrafter) -> Promise:
    if isinstance(verifier, (SharedNoiseMatch, GreedyMatch, TreeMatch)):
        return Promise.SAME_PICTURE  # commits AR's own draw whatever the drafts were
    if not redrafter.draw.honest:
        raise DecodingError(
            f"the {verifier.name} cannot follow {redrafter.draw.name!r} draws: their declared law is not "
            "the law they were drawn from, so the pictures would be biased without notice. Choose fresh, "
            "maximal coupling or shared noise."
        )
    if isinstance(verifier, BlockTest):
        if redrafter.draw.name != "fresh":
            raise DecodingError(
                f"the block test cannot follow {redrafter.draw.name!r} draws: it decides by numbers to the "
                "right of the tokens it keeps, and such draws would carry that choice into the next test, "
                "so the pictures would be biased without notice. Choose fresh draws, or the token test."
            )
        return Promise.SAME_DISTRIBUTION
    if isinstance(verifier, TreeTest):
        return Promise.SAME_DISTRIBUTION
    if isinstance(verifier, TokenTest):
        return Promise.SAME_DISTRIBUTION if isinstance(verifier.ratio, PlainRatio) else Promise.APPROXIMATE
    if isinstance(verifier, SemanticsVerification):
        return Promise.APPROXIMATE
    raise DecodingError(f"no promise is known for the verifier {verifier.name!r}")
