"""A comparison of decoders: who takes part, and the figures that come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..decoding import Decoder, Promise, autoregressive
from .finished_runs import FinishedRun
from .run_settings import RunSettings, for_decoder

Item = TypeVar("Item")
NONE = "–"  # in the table, where a figure does not exist
HEAD = (
    "decoder",
    "promise",
    "seconds",
    "passes",
    "tokens a pass",
    "speed-up over AR",
    "tokens as AR",
)


@dataclass(frozen=True)
class Entry:
    """One decoder of a comparison, with the settings that it runs with."""

    decoder: Decoder
    settings: RunSettings

    @property
    def is_reference(self) -> bool:
        """One token a pass, in passes of their own size: what speed-ups are measured against."""
        return self.decoder == autoregressive()

    @property
    def promise(self) -> str:
        return "reference" if self.is_reference else str(self.decoder.promise)

    @property
    def name(self) -> str:
        return self.decoder.name

    @property
    def parts(self) -> str:
        """Its settings in words."""
        return self.decoder.describe().partition(": ")[2]


def entries_of(decoders: Sequence[Decoder], settings: RunSettings, reference: bool) -> list[Entry]:
    """The decoders as they are wired; before them the reference, where it is wanted and none of them is."""
    entries = [Entry(decoder, for_decoder(settings, decoder)) for decoder in decoders]
    if reference and not any(entry.is_reference for entry in entries):
        entries.insert(0, Entry(autoregressive(), settings))
    return entries


class Stopwatch:
    """Seconds spent inside an iterator, without what its consumer does between two items.

    For a decode: every pass waits for the device once, the last one for the tokens.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock, self.seconds = clock, 0.0

    def over(self, items: Iterator[Item]) -> Iterator[Item]:
        while True:
            before = self.clock()
            item = next(items, None)
            self.seconds += self.clock() - before
            if item is None:
                return
            yield item


@dataclass(frozen=True)
class Figures:
    """What came of one entry."""

    seconds: float
    passes: int
    tokens_a_pass: float
    speed_up: float | None  # None without a reference
    equal: int | None  # tokens as the reference's; None where the promise is another
    cells: int

    def row(self) -> list[str]:
        return [
            f"{self.seconds:.2f}",
            str(self.passes),
            f"{self.tokens_a_pass:.1f}",
            NONE if self.speed_up is None else f"{self.speed_up:.1f}x",
            NONE if self.equal is None else f"{self.equal} of {self.cells}",
        ]


def figures_of(entries: Sequence[Entry], runs: Sequence[FinishedRun | None]) -> list[Figures | None]:
    """None where an entry has not run yet."""
    pairs = list(zip(entries, runs, strict=True))
    reference = next(((entry, run) for entry, run in pairs if entry.is_reference and run), None)
    return [run and figures(entry, run, reference) for entry, run in pairs]


def figures(entry: Entry, run: FinishedRun, reference: tuple[Entry, FinishedRun] | None) -> Figures:
    trace, speed_up, equal = run.trace, None, None
    if reference is not None:
        first, ar = reference
        speed_up = ar.seconds / run.seconds
        # Greedy decoding keeps its promise at temperature 0, where the reference may not have run.
        if (
            entry.decoder.promise is Promise.SAME_PICTURE
            and entry.settings.sampling == first.settings.sampling
        ):
            equal = int((run.tokens == ar.tokens).sum())
    return Figures(
        seconds=run.seconds,
        passes=trace.passes,
        tokens_a_pass=trace.cells / trace.passes,
        speed_up=speed_up,
        equal=equal,
        cells=trace.cells,
    )


def line(entry: Entry, figures: Figures) -> str:
    """One entry, as short as a node has room for."""
    text = f"{entry.name}: {figures.seconds:.2f} s, {figures.passes} passes"
    return text if figures.speed_up is None else f"{text}, {figures.speed_up:.1f}x"


def table(entries: Sequence[Entry], found: Sequence[Figures], notes: Sequence[str] = ()) -> str:
    """In Markdown, the notes in lines below."""
    rows = [
        [cell_text(entry.decoder.describe()), entry.promise, *figures.row()]
        for entry, figures in zip(entries, found, strict=True)
    ]
    return "\n\n".join([markdown_table(HEAD, rows), *notes])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def cell_text(text: str) -> str:
    """Text that cannot break a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())
