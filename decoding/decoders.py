"""Decoders: a schedule, an initialiser, a verifier and a redrafter, with the promise that they keep
together."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import DecodingError
from .initialisers import INITIALISERS, CopyLeft, Initialiser
from .promises import Promise, promise_of
from .redrafters import FreshDraw, GreedyDraw, MaximalCoupling, Redrafter, SharedNoiseDraw
from .schedules import RasterWindow
from .verifiers import ExactTokenTest, GreedyMatch, SharedNoiseMatch, Verifier

DRAWS: dict[str, Redrafter] = {
    part.draw: part for part in (FreshDraw(), MaximalCoupling(), SharedNoiseDraw())
}


@dataclass(frozen=True)
class Decoder:
    """Four interchangeable parts. Combinations that would break a promise in silence are refused
    (DecodingError)."""

    name: str
    schedule: RasterWindow
    initialiser: Initialiser
    verifier: Verifier
    redrafter: Redrafter
    promise: Promise = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "promise", promise_of(self.verifier, self.redrafter))

    def describe(self) -> str:
        """One line for reports."""
        if not self.schedule.drafting or self.schedule.window == 0:
            padded = f", in forwards padded to window {self.schedule.window}" if self.schedule.window else ""
            return f"{self.name}: one token a pass{padded}"
        parts = [
            f"window {self.schedule.window}",
            f"start {self.initialiser.name}",
            f"draws {self.redrafter.draw}",
        ]
        if self.schedule.fixed_shapes:
            parts.append("fixed shapes")
        return f"{self.name}: {', '.join(parts)}"


def autoregressive(padded_window: int = 0) -> Decoder:
    """One token a pass. With `padded_window` W > 0 each forward has the shape of a fixed-shape decoder of
    window W."""
    schedule = RasterWindow(padded_window, drafting=False, fixed_shapes=padded_window > 0)
    return Decoder("Autoregressive", schedule, CopyLeft(), SharedNoiseMatch(), SharedNoiseDraw())


def greedy_jacobi(window: int = 31) -> Decoder:
    """Jacobi decoding of the likeliest tokens (Santilli et al. 2023): AR's picture at temperature 0."""
    return Decoder("Greedy Jacobi", _drafting(window), CopyLeft(), GreedyMatch(), GreedyDraw())


def same_picture(window: int = 31, initialiser: str = "copy left", fixed_shapes: bool = True) -> Decoder:
    """AR's own picture for the seed: drafts are accepted where they equal AR's draw with the cell's shared
    noise."""
    schedule = _drafting(window, fixed_shapes)
    return Decoder(
        "Same-Picture Jacobi", schedule, _initialiser(initialiser), SharedNoiseMatch(), SharedNoiseDraw()
    )


def sjd(window: int = 15, initialiser: str = "uniform", draw: str = "fresh") -> Decoder:
    """Speculative Jacobi decoding (Teng et al., ICLR 2025), with any initialiser and any of the three
    draws."""
    if draw not in DRAWS:
        raise DecodingError(f"unknown draw {draw!r}: choose one of {', '.join(DRAWS)}")
    return Decoder("SJD", _drafting(window), _initialiser(initialiser), ExactTokenTest(), DRAWS[draw])


def _drafting(window: int, fixed_shapes: bool = False) -> RasterWindow:
    if window < 1:
        raise DecodingError(f"a decoder needs a window of at least 1 draft, got {window}")
    return RasterWindow(window, fixed_shapes=fixed_shapes)


def _initialiser(name: str) -> Initialiser:
    if name not in INITIALISERS:
        raise DecodingError(f"unknown initialiser {name!r}: choose one of {', '.join(INITIALISERS)}")
    return INITIALISERS[name]
