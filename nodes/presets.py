"""Presets: a decoder by what a person wants from it, its settings by the family of the model.

Which model it will run with shows only in Generate, so a preset travels on the wire unresolved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..decoding import (
    Decoder,
    Promise,
    autoregressive,
    gsd,
    pjd,
    same_picture,
    sjd,
)

Addition = Callable[[Decoder], Decoder]


@dataclass(frozen=True)
class FamilySettings:
    """What the presets of one family differ in."""

    window: int  # drafts a pass; papers count the last known token too
    threshold: int | None = None  # of PJD; None where its rows are too short to pay


# Windows: coupled drafts have 32 places a pass in the published scripts (arXiv 2510.24211). Thresholds: PJD's
# for LlamaGen at 512 pixels, c = 8, and for the 24 x 24 tokens that Janus shares, c = 6 (arXiv 2606.05703);
# c counts the starter. On the built-in model's rows of 16 coupled GSD takes fewer passes than PJD.
OTHERS = FamilySettings(window=31)
FAMILIES = {
    "built-in": FamilySettings(window=31),
    "LlamaGen c2i": FamilySettings(window=31, threshold=5),
    "LlamaGen t2i": FamilySettings(window=31, threshold=7),
    "Janus": FamilySettings(window=31, threshold=5),
}
PJD_WINDOW = 7


def fastest(family: FamilySettings) -> Decoder:
    if family.threshold is None:
        return gsd(family.window, draw="maximal coupling")
    return pjd(PJD_WINDOW, family.threshold)


# The first is the default. Names are saved in workflows and never change.
PRESETS: dict[str, Callable[[FamilySettings], Decoder]] = {
    "same picture (safe)": lambda family: same_picture(family.window),
    "same distribution, fast": lambda family: sjd(family.window, draw="maximal coupling"),
    "approximate, fastest": fastest,
    "step by step": lambda family: autoregressive(),
}


@dataclass(frozen=True)
class Preset:
    """A decoder still to be resolved, and what was added to it on the way."""

    name: str
    additions: tuple[Addition, ...] = ()

    def resolve(self, family: str) -> Decoder:
        """The decoder for models of this family. DecodingError where an addition does not fit it."""
        decoder = PRESETS[self.name](FAMILIES.get(family, OTHERS))
        for addition in self.additions:
            decoder = addition(decoder)
        return decoder

    @property
    def promise(self) -> Promise:
        """The same for every family."""
        return self.resolve("").promise


DecoderValue = Decoder | Preset  # JACOBI_AR_DECODER


def added(decoder: DecoderValue, addition: Addition) -> DecoderValue:
    """DecodingError where it does not fit, for a preset too, so that the node that adds can say so."""
    if isinstance(decoder, Decoder):
        return addition(decoder)
    preset = replace(decoder, additions=(*decoder.additions, addition))
    preset.resolve("")
    return preset


def resolved(decoder: DecoderValue, family: str) -> Decoder:
    return decoder if isinstance(decoder, Decoder) else decoder.resolve(family)
