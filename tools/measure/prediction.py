"""Why verification prediction (SJD-VP) gains or loses: how far its law and SJD's lie from the next target
law.

python tools/measure/prediction.py [--pictures 20] [--json FILE] [--table-only] [--write]

A draft is kept with probability 1 - TV(declared law, next target law) by any exact test, so a redraft law is
better exactly when it lies nearer to the target law of the next step. Plain SJD runs on the built-in model;
at each step, for each drafted column, the laws q_{t-N} … q_t and the following q_{t+1} of that column are
compared: the acceptance 1 - TV(q', q_{t+1}) for several strengths s of the prediction, q' ~ q exp(s M S), 0
being SJD and 1 SJD-VP; the acceptance of the test that forgets to declare q' (drawn from q', tested by
q_{t+1} / q_t, which is biased); and how the tokens that grew go on. `--write` puts the table into
docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from common import PROMPTS, ROOT, builtin_model, machine, markdown_table, write_block, write_json
from jacobi_ar.decoding import SamplingSettings, decode, image_seeds, run_to_end, sjd
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.redrafters import Redrafter, TargetLaw
from jacobi_ar.decoding.step import Step
from jacobi_ar.model_loaders.image_model import ImageModel
from torch import Tensor

WINDOW, GROWTH, DECAY, CAP, TINY = 31, 3, 0.5, 10.0, 1e-30
STRENGTHS = (-0.25, 0.0, 0.5, 1.0)
DRAWS = ("fresh", "maximal coupling")
CONDITIONS = {"prompts, guidance 2": 2.0, "no prompt": 1.0}
FIRST = "first column"  # the draft whose test comes next
BEHIND = "columns behind it"


@dataclass
class Sums:
    """Means over columns, gathered step by step."""

    count: int = 0
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, values: dict[str, Tensor]) -> None:
        self.count += len(next(iter(values.values())))
        for name, value in values.items():
            self.totals[name] += float(value.sum())

    def means(self) -> dict[str, float]:
        return {name: total / max(self.count, 1) for name, total in self.totals.items()}


class Watcher:
    """SJD's redraft law that also compares what the last step's laws would have been worth now."""

    name = TargetLaw.name

    def __init__(self) -> None:
        self.prediction = VerificationPrediction(GROWTH, DECAY, CAP)
        self.sums = {FIRST: Sums(), BEHIND: Sums()}

    def facts(self) -> list[str]:
        return []

    def laws(self, step: Step) -> tuple[Tensor, object]:
        history = step.drafts.history
        if history is not None:
            self._compare(step.target_laws[:, : step.width], history.laws, history.age, step.testable)
        remembered = replace(self.prediction, growth=GROWTH + 1).laws(step)[1]
        return step.target_laws, remembered

    def _compare(self, following: Tensor, past: Tensor, age: Tensor, testable: Tensor) -> None:
        """`following` [L, W, V] is q_{t+1}, `past` [L, W, N + 1, V] is q_t, q_{t-1}, …"""
        known = testable & (age > GROWTH)
        for where, chosen in ((FIRST, known[:, :1]), (BEHIND, known[:, 1:])):
            part = slice(0, 1) if where == FIRST else slice(1, None)
            q_next, laws = following[:, part][chosen], past[:, part][chosen]  # [M, V], [M, N + 1, V]
            if not len(q_next):
                continue
            q, earlier = laws[:, 0], laws[:, 1:]
            values = {}
            fused = self.prediction._fuse(q[None], earlier[None])[0]
            gain = fused / q.clamp(min=TINY)
            for strength in STRENGTHS:
                leaned = torch.where(q > 0, q * gain**strength, 0.0)
                values[f"s = {strength:g}"] = _kept(leaned / leaned.sum(-1, keepdim=True), q_next)
            values["undeclared"] = (fused * (q_next / q.clamp(min=TINY)).clamp(max=1.0)).sum(-1)
            growing = (laws[:, :-1] > laws[:, 1:]).all(1)
            values["growing"] = (q * growing).sum(-1)
            values["growing, next step"] = (q_next * growing).sum(-1)
            kept = torch.minimum(q, q_next)  # mass of drafts x that the test keeps
            values["kept"] = kept.sum(-1)
            values["kept and growing"] = (kept * growing).sum(-1)
            self.sums[where].add(values)


def _kept(law: Tensor, following: Tensor) -> Tensor:
    """Acceptance of the exact test, 1 - TV: [M]."""
    return torch.minimum(law, following).sum(-1)


def watch(model: ImageModel, condition: str, pictures: int, draw: str) -> dict[str, dict[str, float]]:
    decoder = sjd(WINDOW, draw=draw)
    watcher = Watcher()
    decoder = replace(decoder, redrafter=Redrafter(watcher, decoder.redrafter.draw))
    texts = ["" if condition == "no prompt" else PROMPTS[i % len(PROMPTS)] for i in range(pictures)]
    for first in range(0, pictures, 10):
        part = [model.encode_prompt(text) for text in texts[first : first + 10]]
        target = model.target(model.grids[0], CONDITIONS[condition])
        with torch.inference_mode():
            run_to_end(decode(target, part, decoder, SamplingSettings(), image_seeds(first, len(part))))
    return {where: sums.means() | {"columns": sums.count} for where, sums in watcher.sums.items()}


def row(condition: str, draw: str, where: str, means: dict[str, float]) -> list[str]:
    acceptances = [means[f"s = {strength:g}"] for strength in STRENGTHS] + [means["undeclared"]]
    masses = [means["growing"], means["growing, next step"]]
    masses.append(means["kept and growing"] / means["kept"])
    figures = [f"{figure:.3f}" for figure in acceptances + masses]
    return [condition, draw, where, f"{means['columns']:,}", *figures]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=int, default=50, help="pictures a row (default 50)")
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "measured" / "prediction.json")
    parser.add_argument("--table-only", action="store_true", help="from the JSON file, measuring nothing")
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured.md")
    options = parser.parse_args()
    if not options.table_only:
        model = builtin_model()
        means = {
            condition: {draw: watch(model, condition, options.pictures, draw) for draw in DRAWS}
            for condition in CONDITIONS
        }
        caption = f"{options.pictures} pictures a condition, window {WINDOW}. {machine()}."
        write_json(options.json, {"caption": caption, "means": means})
    found = json.loads(options.json.read_text(encoding="utf-8"))
    rows = [
        row(condition, draw, where, means)
        for condition, draws in found["means"].items()
        for draw, columns in draws.items()
        for where, means in columns.items()
    ]
    head = ["condition", "draws", "column", "columns"]
    head += [f"kept, s = {strength:g}" for strength in STRENGTHS]
    head += ["kept, undeclared", "mass that grew", "the same tokens' mass at the next step"]
    head += ["share of kept drafts that had grown"]
    table = f"{markdown_table(head, rows)}\n\n{found['caption']}"
    print(table)
    if options.write:
        write_block(ROOT / "docs" / "measured.md", "prediction", table)


if __name__ == "__main__":
    main()
