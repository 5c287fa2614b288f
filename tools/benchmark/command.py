"""What the commands of tools/bench.py do."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence

import torch

from ...decoding import Promise
from ...decoding.target import DenoisingModel
from ..measure.common import ROOT, write_block
from ..problem import Problem
from .catalogue import ABLATIONS, MAIN, OWN_LAW
from .compare import Comparison
from .memory import peak_elsewhere, peak_mib
from .options import model_arguments, read_options
from .pictures import PictureStore
from .results import Results, time_figures
from .specs import SpecError, canonical, decoder_of
from .subject import Condition, Subject, load_subject
from .tables import Pages
from .timing import BASELINE, Stopwatch

MAIN_CONDITIONS = ("prompts@1", "prompts@2", "none@1")
OPEN = Condition(False, 1.0)
DOCS = ROOT / "docs" / "measured"


def run(arguments: Sequence[str], description: str | None) -> None:
    options = read_options(arguments, description)
    if options.threads:
        torch.set_num_threads(options.threads)
    commands = {
        "time": measure_time,
        "closeness": measure_closeness,
        "table": write_tables,
        "memory-of": print_memory,
    }
    try:
        commands[options.command](options)
    except (SpecError, Problem) as error:
        raise SystemExit(str(error)) from None


def say(line: str) -> None:
    print(line, flush=True)


def chosen(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(label, spec) of the decoders that the command is for."""
    if options.ablate is not None:
        rows = [row for name in options.ablate or ABLATIONS for row in ABLATIONS[name].rows()]
        return [(f"{label}, {value}", spec) for label, value, spec in rows]
    if options.decoders:
        return [(spec, canonical(spec)) for spec in options.decoders]
    return [(entry.label, entry.spec) for entry in MAIN]


def runnable(subject: Subject, options: argparse.Namespace) -> list[str]:
    """The chosen decoders, but for those that need weights which this model has not."""
    specs = [canonical(spec) for _, spec in chosen(options)]
    target = subject.target(OPEN)
    lacking = [spec for spec in specs if decoder_of(spec).denoises and not isinstance(target, DenoisingModel)]
    if lacking:
        say(f"left out, because this model was not trained to read noise: {', '.join(lacking)}")
    return [spec for spec in specs if spec not in lacking]


def conditions(options: argparse.Namespace) -> list[Condition]:
    default = ("none@1",) if options.ablate is not None else MAIN_CONDITIONS
    return [Condition.read(text) for text in options.conditions or default]


def measure_time(options: argparse.Namespace) -> None:
    subject = subject_of(options)
    stopwatch = Stopwatch(options.out, subject)
    specs = runnable(subject, options)
    results = Results(options.out / "time.json", subject)
    memory = _Memory(options, subject)
    for condition in conditions(options):
        stopwatch.measure(
            specs, condition, options.pictures or (24 if options.ablate is not None else 100), say
        )
        for spec in specs:
            figures = time_figures(stopwatch, spec, condition)
            assert figures is not None
            if options.ablate is None and not options.no_memory:
                figures["memory"] = memory.of(spec, condition)
            else:
                figures["memory"] = (results.of(spec, condition) or {}).get("memory")
            results.put(spec, condition, figures)
            say(f"{condition.title}: {spec}: {figures['passes']:.1f} passes, {figures['seconds']:.3f} s")


class _Memory:
    """Peaks that were measured, on disk. With and without guidance differ, prompts do not."""

    def __init__(self, options: argparse.Namespace, subject: Subject) -> None:
        self.options, self.subject = options, subject
        self.path = options.out / f"memory-{subject.key}.json"
        self.peaks = json.loads(self.path.read_text()) if self.path.exists() else {}

    def of(self, spec: str, condition: Condition) -> float | None:
        key = f"{spec} guidance {condition.guidance:g}"
        if key not in self.peaks:
            if self.subject.device.type == "cuda":
                self.peaks[key] = peak_mib(self.subject, spec, condition)
            else:
                self.peaks[key] = peak_elsewhere(model_arguments(self.options), spec, condition)
            self.path.write_text(json.dumps(self.peaks, indent=1))
        return self.peaks[key]


def measure_closeness(options: argparse.Namespace) -> None:
    subject = subject_of(options)
    comparison = Comparison(PictureStore(options.out, subject, options.batch), options.drawings)
    results = Results(options.out / "closeness.json", subject)
    if any(condition.prompted for condition in conditions(options)):
        if options.drawings:
            _ = comparison.drawings  # what is wrong with them shows before the first picture
        results.about["drawings"] = (
            "Name recalled: the nearest of the drawings that the model learned from, and others of their "
            "packages, has the prompt's name."
            if options.drawings
            else "Name recalled: among greedy step-by-step pictures of the prompts, which stand in for "
            "drawings, the nearest is the prompt's own."
        )
    specs = runnable(subject, options)
    if options.ablate is not None:
        # What keeps the distribution has nothing to show here.
        specs = [spec for spec in specs if decoder_of(spec).promise is Promise.APPROXIMATE]
    pictures = options.pictures or (200 if options.ablate is not None else 300)
    for condition in conditions(options):
        for spec in dict.fromkeys([BASELINE, *specs]):
            if spec in OWN_LAW:
                continue
            figures = comparison.measure(spec, condition, pictures)
            results.put(spec, condition, figures)
            shown = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
            say(f"{condition.title}: {spec}: {shown}")


def write_tables(options: argparse.Namespace) -> None:
    from .plots import plot_closeness, plot_windows  # noqa: PLC0415  (matplotlib is no dependency of the rest)

    time, close = Results(options.out / "time.json"), Results(options.out / "closeness.json")
    if not time.about:
        raise SystemExit(f"nothing is measured in {options.out}: first the commands time and closeness")
    pages = Pages(time, close, chosen(options))
    shown = [Condition.read(text) for text in options.conditions or MAIN_CONDITIONS]
    blocks = {"main": pages.main(shown), "closeness": pages.closeness(shown)}
    blocks |= {f"ablation {name}": pages.ablation(name, OPEN) for name in ABLATIONS}
    blocks["decoders"] = pages.readme(Condition(True, 2.0), OPEN)
    folder = DOCS if options.write else options.out
    plotted = OPEN if OPEN in shown else shown[-1]
    if plot_closeness(time, close, chosen(options), plotted, folder / "closeness.png"):
        picture = "![Passes and seconds against closeness](measured/closeness.png)"
        blocks["closeness"] += f"\n\n{picture}"
    if plot_windows(time, OPEN, folder / "windows.png"):
        picture = "![Tokens accepted a pass against the window](measured/windows.png)"
        blocks["ablation window"] += f"\n\n{picture}"
    for name, text in blocks.items():
        say(f"<!-- {name} -->\n{text}\n")
        if options.write:
            page = ROOT / "README.md" if name == "decoders" else ROOT / "docs" / "measured.md"
            write_block(page, name, text)
    if options.write:
        for name in ("time.json", "closeness.json"):
            if (options.out / name).exists():
                shutil.copyfile(options.out / name, DOCS / name)


def print_memory(options: argparse.Namespace) -> None:
    subject = subject_of(options)
    print(json.dumps(peak_mib(subject, options.decoders[0], Condition.read(options.conditions[0]))))


def subject_of(options: argparse.Namespace) -> Subject:
    prompts = list(options.prompt or [])
    if options.prompts is not None:
        prompts += options.prompts.read_text(encoding="utf-8").splitlines()
    return load_subject(
        options.model,
        options.tokenizer,
        options.text_encoder,
        prompts,
        options.dtype,
        options.device,
        options.grid,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
    )
