"""Which decoders the tables show, and which settings the ablations vary.

Windows count drafts: 7, 15, 31, … are the papers' 8, 16, 32, … . A new decoder is one line here, and its
constructor's name one in `specs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...decoding import INITIALISERS
from .specs import canonical
from .timing import BASELINE


@dataclass(frozen=True)
class Entry:
    """A row of the main table; `how` is its line in the README, none without."""

    label: str
    spec: str
    how: str = ""


MAIN = [
    Entry("Autoregressive", BASELINE, "one token a pass"),
    Entry(
        "Same-Picture Jacobi",
        "same_picture(window=31)",
        "a draft stands where it is step-by-step decoding's own draw",
    ),
    Entry("Same-Picture Rows", "same_picture_rows(window=31, threshold=4)"),
    Entry(
        "Same-Picture Tree", "same_picture_tree(window=31)", "with runners-up of the next guesses standing by"
    ),
    Entry("Same-Picture Denoising", "same_picture_denoising(window=31)"),
    Entry(
        "Greedy Jacobi",
        "greedy_jacobi(window=31)",
        "likeliest tokens only: step-by-step decoding at temperature 0",
    ),
    Entry("SJD", "sjd(window=31)", "speculative Jacobi decoding, as published"),
    Entry(
        "SJD, maximal coupling",
        "sjd(window=31, draw=maximal coupling)",
        "redrafts change no more than their law does",
    ),
    Entry(
        "SJD, shared noise", "sjd(window=31, draw=shared noise)", "redrafts meet the same noise at every try"
    ),
    Entry("SJD2", "sjd2(window=31)", "drafts begin as noise and lose it; needs weights made for that"),
    Entry(
        "SJD2, maximal coupling", "sjd2(window=31, draw=maximal coupling)", "the same, with coupled redrafts"
    ),
    Entry("SJD with Block Test", "block_sjd(window=31)", "the whole window tested at once"),
    Entry(
        "SJD with Tree Drafts (PAC)",
        "sjd_tree(window=31)",
        "several guesses for the next tokens, in all combinations; maximal coupling",
    ),
    Entry("SJD-PAC, 4 siblings", "sjd_tree(window=31, siblings=4)"),
    Entry("SJD + VP", "sjd(window=31)+vp", "redrafts lean to what keeps growing"),
    Entry("SJD + VP, maximal coupling", "sjd(window=31, draw=maximal coupling)+vp"),
    Entry("GSD", "gsd(window=31)", "a draft may stand for tokens near it"),
    Entry("LANTERN", "lantern(window=31, neighbours=100)", "a draft may stand for codes that look like it"),
    Entry("SJD + SV", "sjd(window=31)+sv", "runs of drafts tested as one"),
    Entry("SJD + SV, maximal coupling", "sjd(window=31, draw=maximal coupling)+sv"),
    Entry("GSD + SV", "gsd(window=31)+sv"),
    Entry("LANTERN + SV", "lantern(window=31, neighbours=100)+sv"),
    Entry("PJD", "pjd(window=7, threshold=4)", "several rows at once, each with its window"),
    Entry("ZipAR", "zipar(threshold=4)", "several rows at once, one token each, untested"),
]
# Decodes at temperature 0 whatever the settings say: nothing to compare with the other pictures.
OWN_LAW = {canonical("greedy_jacobi(window=31)")}


@dataclass(frozen=True)
class Ablation:
    """One setting varied in some decoders: `{}` in a spec stands for its value."""

    title: str
    setting: str
    series: dict[str, str]  # label -> spec with {}
    values: Sequence[str]

    def rows(self) -> list[tuple[str, str, str]]:
        """(label, value, spec)"""
        return [
            (label, value, spec.format(value)) for label, spec in self.series.items() for value in self.values
        ]


_WINDOWED = {
    "Same-Picture Jacobi": "same_picture(window={})",
    "SJD": "sjd(window={})",
    "SJD, maximal coupling": "sjd(window={}, draw=maximal coupling)",
    "SJD2": "sjd2(window={})",
    "SJD2, maximal coupling": "sjd2(window={}, draw=maximal coupling)",
    "SJD with Block Test": "block_sjd(window={})",
    "Same-Picture Tree": "same_picture_tree(window={})",
    "SJD with Tree Drafts (PAC)": "sjd_tree(window={})",
    "SJD + SV": "sjd(window={})+sv",
    "SJD + SV, maximal coupling": "sjd(window={}, draw=maximal coupling)+sv",
}
ABLATIONS = {
    "window": Ablation("Window", "drafts a pass", _WINDOWED, ("7", "15", "31", "47", "63", "95")),
    "alpha": Ablation(
        "Proportion of semantics verification",
        "alpha",
        {"SJD + SV": "sjd(window=31)+sv(proportion={})"},
        ("0.5", "0.6", "0.7", "0.8", "0.9", "1.0"),
    ),
    "growth": Ablation(
        "Growth of verification prediction",
        "N",
        {
            "SJD + VP": "sjd(window=31)+vp(growth={})",
            "SJD + VP, maximal coupling": "sjd(window=31, draw=maximal coupling)+vp(growth={})",
        },
        ("2", "3", "4"),
    ),
    "steps": Ablation(
        "Noisy steps of SJD2",
        "passes under noise",
        {
            "SJD2": "sjd2(window=31, steps={})",
            "SJD2, maximal coupling": "sjd2(window=31, steps={}, draw=maximal coupling)",
        },
        ("1", "2", "4"),
    ),
    "threshold": Ablation(
        "Context threshold of row-parallel decoding",
        "tokens of the row above",
        {"PJD, window 7": "pjd(window=7, threshold={})", "ZipAR": "zipar(threshold={})"},
        ("2", "4", "8", "12", "16"),
    ),
    "start": Ablation(
        "Start of drafts",
        "start",
        {
            "Same-Picture Jacobi": "same_picture(window=31, initialiser={})",
            "SJD": "sjd(window=31, initialiser={})",
            "SJD, maximal coupling": "sjd(window=31, initialiser={}, draw=maximal coupling)",
        },
        tuple(INITIALISERS),
    ),
}
