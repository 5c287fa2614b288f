"""Decoders: a schedule, an initialiser, a verifier and a redrafter, with the promise they keep together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .block import BlockTest
from .denoising import GaussianNoise
from .errors import DecodingError
from .initialisers import INITIALISERS, CopyLeft, Initialiser
from .lanes import ACCEPTED, FRONTIER, NOTHING
from .prediction import VerificationPrediction
from .promises import Promise, check_start, promise_of
from .ratios import GroupedRatio, NeighbourhoodRatio
from .redrafters import Draw, FreshDraw, GreedyDraw, MaximalCoupling, Redrafter, SharedNoiseDraw, TargetLaw
from .rows import RowParallel
from .schedules import RasterWindow, Schedule
from .semantics import SemanticsVerification
from .tree import TreeWindow
from .tree_verifiers import TreeMatch, TreeTest
from .verifiers import GreedyMatch, SharedNoiseMatch, TokenTest, Verifier

DRAWS: dict[str, Draw] = {part.name: part for part in (FreshDraw(), MaximalCoupling(), SharedNoiseDraw())}


@dataclass(frozen=True)
class Decoder:
    """Four interchangeable parts. DecodingError for combinations that would break a promise in silence."""

    name: str
    schedule: Schedule
    initialiser: Initialiser
    verifier: Verifier
    redrafter: Redrafter
    promise: Promise = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "promise", promise_of(self.verifier, self.redrafter, self.schedule))
        check_start(self.initialiser, self.verifier, self.schedule)

    @property
    def denoises(self) -> bool:
        """Whether it needs a `DenoisingModel`."""
        return isinstance(self.initialiser, GaussianNoise)

    def describe(self) -> str:
        """One line for reports."""
        facts = self.schedule.facts()
        if self.schedule.drafting:
            facts += [f"start {self.initialiser.name}", f"draws {self.redrafter.draw.name}"]
            facts += [*self.verifier.facts(), *self.redrafter.law.facts()]
        return f"{self.name}: {', '.join(facts)}"


def autoregressive(padded_window: int = 0) -> Decoder:
    """One token a pass; with `padded_window` above 0 in the shapes of a fixed-shape decoder of that
    window."""
    schedule = RasterWindow(padded_window, pads_only=True, fixed_shapes=padded_window > 0)
    redrafter = Redrafter(TargetLaw(), SharedNoiseDraw())
    return Decoder("Autoregressive", schedule, CopyLeft(), SharedNoiseMatch(), redrafter)


def greedy_jacobi(window: int = 31) -> Decoder:
    """Jacobi decoding of the likeliest tokens (Santilli et al. 2023): AR's picture at temperature 0."""
    redrafter = Redrafter(TargetLaw(), GreedyDraw())
    return Decoder("Greedy Jacobi", _drafting(window), CopyLeft(), GreedyMatch(), redrafter)


def same_picture(window: int = 31, initialiser: str = "uniform", fixed_shapes: bool = True) -> Decoder:
    """AR's own picture for the seed: a draft stands where it is AR's draw with the cell's shared noise."""
    schedule, redrafter = _drafting(window, fixed_shapes), Redrafter(TargetLaw(), SharedNoiseDraw())
    return Decoder("Same-Picture Jacobi", schedule, _initialiser(initialiser), SharedNoiseMatch(), redrafter)


def sjd(window: int = 15, initialiser: str = "uniform", draw: str = "fresh") -> Decoder:
    """Speculative Jacobi decoding (Teng et al., ICLR 2025), with any initialiser and any of the three
    draws."""
    return _tested("SJD", TokenTest(), window, initialiser, draw)


def block_sjd(window: int = 31, initialiser: str = "uniform") -> Decoder:
    """SJD with block verification (Sun et al., arXiv 2403.10444) in place of the token test; fresh draws."""
    return _tested("SJD, block test", BlockTest(), window, initialiser, "fresh")


def sjd_tree(
    window: int = 31,
    siblings: int = 3,
    depth: int = 2,
    initialiser: str = "uniform",
    draw: str = "maximal coupling",
) -> Decoder:
    """SJD with a tree of drafts at the head of the window and maximal coupling behind it (SJD-PAC, arXiv
    2603.18599).

    siblings: candidates for each of the first `depth` positions (paper 4, released code 3). The paper's D
        counts the committed token too: its 3 is depth 2 here. The extra drafts come on top of the window.
    """
    decoder = sjd(window, initialiser, draw)
    schedule = TreeWindow(window, siblings=siblings, depth=depth)
    return replace(decoder, name="SJD-PAC", schedule=schedule, verifier=TreeTest())


def same_picture_tree(
    window: int = 31, siblings: int = 3, depth: int = 2, initialiser: str = "uniform"
) -> Decoder:
    """Same-picture decoding with a tree of drafts: the runners-up of each draft's race stand by. Without
    fixed shapes."""
    decoder = same_picture(window, initialiser, fixed_shapes=False)
    schedule = TreeWindow(window, siblings=siblings, depth=depth)
    return replace(decoder, name="Same-Picture Tree", schedule=schedule, verifier=TreeMatch())


def sjd2(window: int = 31, steps: int = 1, draw: str = "fresh") -> Decoder:
    """Speculative Jacobi-denoising decoding (Teng et al., NeurIPS 2025, arXiv 2510.08994): drafts begin as
    noise.

    steps: passes until a draft is fed, and tested, as a token. Needs a `DenoisingModel`.
    """
    return replace(sjd(window, draw=draw), name="SJD2", initialiser=GaussianNoise(steps))


def same_picture_denoising(window: int = 31, steps: int = 1) -> Decoder:
    """Same-picture decoding whose drafts begin as noise, as SJD2's do. Without fixed shapes."""
    decoder = same_picture(window, fixed_shapes=False)
    return replace(decoder, name="Same-Picture Denoising", initialiser=GaussianNoise(steps))


def gsd(
    window: int = 15,
    initialiser: str = "uniform",
    draw: str = "fresh",
    group: int = 14,
    probability_gap: float = 0.15,
    embedding_gap: float = 0.5,
) -> Decoder:
    """Grouped speculative decoding (ICCV 2025)."""
    ratio = GroupedRatio(group, probability_gap, embedding_gap)
    return _tested("GSD", TokenTest(ratio), window, initialiser, draw)


def lantern(
    window: int = 15,
    initialiser: str = "copy left",
    draw: str = "fresh",
    neighbours: int = 1000,
    bound: float = 0.1,
) -> Decoder:
    """LANTERN's relaxed test (ICLR 2025) inside SJD.

    Starts that are drawn are refused: their declared probability is far below the bound, so that the relaxed
    test would wave nearly all of them through, and the picture would be noise.
    """
    if _initialiser(initialiser).draws:
        raise DecodingError(
            f"LANTERN's test would let nearly any {initialiser!r} start pass (the bound exceeds its "
            "probability), which gives noise: choose copy left or copy above"
        )
    ratio = NeighbourhoodRatio(neighbours, bound)
    return _tested("LANTERN", TokenTest(ratio), window, initialiser, draw)


def pjd(
    window: int = 7,
    threshold: int = 8,
    initialiser: str = "uniform",
    draw: str = "fresh",
    only_draft: bool = False,
) -> Decoder:
    """Parallel Jacobi decoding (arXiv 2606.05703): several rows at once, each with its own window.

    only_draft: rows below the first unfinished one prepare drafts and commit nothing; then the promise is
        SJD's own. Papers' figures count one token more: their window 8 and c 9 are 7 and 8 here.
    """
    return _in_rows(sjd(window, initialiser, draw), "PJD", threshold, only_draft)


def same_picture_rows(window: int = 15, threshold: int = 8, initialiser: str = "uniform") -> Decoder:
    """Same-picture decoding whose next row drafts ahead, as PJD's rows do."""
    return _in_rows(same_picture(window, initialiser), "Same-Picture Rows", threshold, only_draft=True)


def zipar(threshold: int = 16) -> Decoder:
    """ZipAR (ICML 2025): a row starts when the row above is `threshold` tokens ahead; one token a row a
    pass."""
    schedule = RowParallel(0, threshold, FRONTIER)
    return replace(autoregressive(), name="ZipAR", schedule=schedule)


def _in_rows(decoder: Decoder, name: str, threshold: int, only_draft: bool) -> Decoder:
    schedule = RowParallel(decoder.schedule.window, threshold, NOTHING if only_draft else ACCEPTED)
    return replace(decoder, name=name, schedule=schedule)


def with_semantics(
    decoder: Decoder, proportion: float = 0.8, one_number: bool = True, reject_from_start: bool = False
) -> Decoder:
    """`decoder` with semantics verification over its ratio (SJD-SV, arXiv 2609.13245)."""
    if isinstance(decoder.verifier, SemanticsVerification):
        raise DecodingError(f"{decoder.name} has semantics verification already")
    if not isinstance(decoder.verifier, TokenTest):
        raise DecodingError(
            "semantics verification works over a ratio test (SJD, GSD, LANTERN, PJD); "
            f"{decoder.name} has none"
        )
    verifier = SemanticsVerification(decoder.verifier.ratio, proportion, one_number, reject_from_start)
    return replace(decoder, name=f"{decoder.name}-SV", verifier=verifier)


def with_prediction(decoder: Decoder, growth: int = 3, decay: float = 0.5, cap: float = 10.0) -> Decoder:
    """`decoder` with verification prediction as the law of its redrafts (SJD-VP, arXiv 2603.27115)."""
    if isinstance(decoder.redrafter.law, VerificationPrediction):
        raise DecodingError(f"{decoder.name} has verification prediction already")
    if not decoder.schedule.drafting or isinstance(decoder.verifier, GreedyMatch):
        raise DecodingError(f"verification prediction changes the law of redrafts; {decoder.name} draws none")
    redrafter = Redrafter(VerificationPrediction(growth, decay, cap), decoder.redrafter.draw)
    return replace(decoder, name=f"{decoder.name}-VP", redrafter=redrafter)


def _tested(name: str, verifier: Verifier, window: int, initialiser: str, draw: str) -> Decoder:
    if draw not in DRAWS:
        raise DecodingError(f"unknown draw {draw!r}: choose one of {', '.join(DRAWS)}")
    redrafter = Redrafter(TargetLaw(), DRAWS[draw])
    return Decoder(name, _drafting(window), _initialiser(initialiser), verifier, redrafter)


def _drafting(window: int, fixed_shapes: bool = False) -> RasterWindow:
    if window < 1:
        raise DecodingError(f"a decoder needs a window of at least 1 draft, got {window}")
    return RasterWindow(window, fixed_shapes=fixed_shapes)


def _initialiser(name: str) -> Initialiser:
    if name not in INITIALISERS:
        raise DecodingError(f"unknown initialiser {name!r}: choose one of {', '.join(INITIALISERS)}")
    return INITIALISERS[name]
