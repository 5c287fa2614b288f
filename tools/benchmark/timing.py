"""Passes and seconds of single pictures, the decoders taking turns in one run.

For each picture all decoders decode it one after the other, step-by-step decoding among them, in an order
that rotates from picture to picture: whatever else the machine does falls on all alike. Records are appended
to a file as they come; a new run makes what is missing, each time with a step-by-step decode beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ...decoding import TargetModel
from .specs import canonical, decoder_of
from .subject import Condition, Subject

BASELINE = "autoregressive"
_WARM_UP_PASSES = 6


@dataclass(frozen=True)
class Record:
    """One picture decoded alone."""

    decoder: str  # canonical spec
    condition: str
    picture: int
    run: str  # when the command was started; ratios are taken within a run
    passes: int
    seconds: float
    inside: float  # seconds of them in the model
    accepted: float  # drafts accepted a pass

    @property
    def key(self) -> tuple[str, str, int]:
        return self.decoder, self.condition, self.picture

    @property
    def turn(self) -> tuple[str, str, int]:
        """Records of one turn are of the same picture in the same run, one after the other."""
        return self.run, self.condition, self.picture


class TimedTarget:
    """A target model that sums up the time spent in it."""

    def __init__(self, target: TargetModel) -> None:
        self._target = target
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        return (
            self._timed(found)
            if name in ("prefill", "forward", "forward_noised", "move", "retain")
            else found
        )

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            wait(self._target.device)
            start = time.perf_counter()
            made = call(*arguments, **named)
            wait(self._target.device)
            self.seconds += time.perf_counter() - start
            return made

        return timed


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Stopwatch:
    """Interleaved measurement with its file of records."""

    def __init__(self, folder: Path, subject: Subject) -> None:
        self.subject = subject
        # Other threads or another device are another measurement.
        facts = f"{subject.key} {subject.machine}"
        self.path = folder / f"time-{_slug(facts)}.jsonl"
        records = [Record(**json.loads(line)) for line in _lines(self.path)]
        # A kill may have come before the step-by-step decode that a record is compared with: made again.
        compared = {r.turn for r in records if r.decoder == BASELINE}
        self.records = [r for r in records if r.turn in compared]

    def measure(
        self, specs: Sequence[str], condition: Condition, pictures: int, say: Callable[[str], None] = print
    ) -> None:
        """Decode pictures 0 .. with every decoder, those excepted that have a record."""
        run = time.strftime("%Y-%m-%d %H:%M:%S")
        wanted = list(dict.fromkeys(canonical(spec) for spec in specs))
        warm: set[str] = set()
        key = self.subject.key_of(condition)
        for picture in range(pictures):
            have = {record.key for record in self.records}
            missing = [spec for spec in wanted if (spec, key, picture) not in have]
            if not missing:
                continue
            turn = picture % (len(missing) + 1)
            order = [BASELINE, *(spec for spec in missing if spec != BASELINE)]
            for spec in order[turn:] + order[:turn]:
                if spec not in warm:
                    self._decode(spec, condition, picture, passes=_WARM_UP_PASSES)
                    warm.add(spec)
                self._append(self._record(spec, condition, picture, run))
            if picture % 10 == 9:
                say(f"{condition.title}: {picture + 1} of {pictures} pictures, {len(missing)} decoders")

    def of(self, spec: str, condition: Condition) -> list[tuple[Record, Record]]:
        """(record, step-by-step record of its turn), the latest of each picture."""
        here = [r for r in self.records if r.condition == self.subject.key_of(condition)]
        base = {r.turn: r for r in here if r.decoder == BASELINE}
        found = {r.picture: r for r in here if r.decoder == canonical(spec)}
        return [(record, base[record.turn]) for _, record in sorted(found.items())]

    def _decode(
        self, spec: str, condition: Condition, picture: int, timed: bool = False, passes: int | None = None
    ) -> tuple[Any, float, float]:
        """(trace or None, seconds, seconds inside the model)."""
        target: Any = self.subject.target(condition)
        target = TimedTarget(target) if timed else target
        wait(self.subject.device)
        start = time.perf_counter()
        result = self.subject.run(target, decoder_of(spec), condition, [picture], passes=passes)
        wait(self.subject.device)
        seconds = time.perf_counter() - start
        return result and result.trace, seconds, target.seconds if timed else 0.0

    def _record(self, spec: str, condition: Condition, picture: int, run: str) -> Record:
        trace, seconds, inside = self._decode(spec, condition, picture, timed=True)
        if self.subject.device.type == "cuda":
            # Waiting around each forward is not how it decodes: whole seconds come from a run without.
            share = inside / seconds
            trace, seconds, _ = self._decode(spec, condition, picture)
            inside = share * seconds
        taken = [accepted[0] for accepted in trace.accepted if accepted[0] >= 0]
        return Record(
            spec,
            self.subject.key_of(condition),
            picture,
            run,
            trace.passes_of[0],
            round(seconds, 6),
            round(inside, 6),
            sum(taken) / max(len(taken), 1),
        )

    def _append(self, record: Record) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
        self.records.append(record)


def _lines(path: Path) -> list[str]:
    """Complete lines: a kill may have left half a one at the end, which is cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return whole.splitlines()


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in text)
