"""The commands of make.py, one function each."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from safetensors import safe_open
from torch import nn

from ...model_loaders.errors import CheckpointError
from ...model_loaders.load import BUILTIN_MODEL
from ...model_loaders.load_tokenizer import BUILTIN_TOKENIZER
from ..benchmark.subject import Condition
from ..problem import Problem
from ..stamps import Stamps
from . import drawings, evaluate, export, settings
from .card import card, names_page
from .loop import CURVE, averaged_state, progress_of
from .network import Network
from .origin import commit, fingerprint
from .report import GUIDANCE, report, spread
from .shapes import shapes
from .tokenise import Lessons, load_lessons, tokenise
from .train_denoiser import DenoiserJob, train_denoiser
from .train_tokenizer import train_tokenizer
from .train_transformer import train_transformer

ROOT = Path(__file__).resolve().parents[2]
EVALUATION, SHEET = "evaluation/evaluation.json", "evaluation/sheet.png"
HOME = ROOT / ".data" / "builtin_model"


@dataclass(frozen=True)
class Place:
    """Folders of one training, and how it is run."""

    home: Path
    settings: settings.Settings
    device: torch.device
    smoke: bool
    most_names: int

    @property
    def drawings(self) -> Path:
        return self.home / "drawings"

    @property
    def tokenizer(self) -> Path:
        return self.home / "tokenizer"

    @property
    def transformer(self) -> Path:
        return self.home / "transformer"

    @property
    def denoiser(self) -> Path:
        return self.home / "denoiser"

    @property
    def stamps(self) -> Stamps:
        return Stamps(self.home / "stamps")

    @property
    def weights(self) -> evaluate.Weights:
        return evaluate.Weights(self.home / export.TRANSFORMER, self.home / export.TOKENIZER)


def data(place: Place) -> bool:
    if not place.smoke:
        drawings.prepare(place.drawings, place.home / "packages", place.settings.side)
    elif not (place.drawings / "drawings.json").exists():
        drawn = list(shapes(place.settings.side))
        about = [drawing for drawing, _ in drawn]
        drawings.save(place.drawings, (picture for _, picture in drawn), about, place.settings.side)
    return True


def tokenizer(place: Place) -> bool:
    found = drawings.load(_needed(place.drawings, "drawings.json", "data"))
    done = train_tokenizer(place.tokenizer, found, place.settings.tokenizer, place.device)
    write_tokenizer(place)
    return done


def write_tokenizer(place: Place) -> None:
    size = place.settings.tokenizer.size
    network = export.load_tokenizer_network(place.tokenizer, size)
    made = _made(place.tokenizer, place.settings.tokenizer.plan.seed)
    export.write_tokenizer(place.weights.tokenizer, network, made)


def tokens(place: Place) -> bool:
    found = drawings.load(_needed(place.drawings, "drawings.json", "data"))
    _needed(place.tokenizer, "checkpoint.pt", "tokenizer")
    drawn = hashlib.sha256((place.drawings / "drawings.json").read_bytes()).hexdigest()
    network = export.load_tokenizer_network(place.tokenizer, place.settings.tokenizer.size)
    weights = fingerprint(network.state_dict())
    made_from = f"tokenizer {weights}, drawings {drawn}, {place.settings.choice}"
    if (place.home / "lessons.npz").exists() and place.stamps.done("tokens", made_from):
        print("the tokens are those of this tokenizer")
        return True
    tokenise(place.home, found, place.settings.choice, network)
    place.stamps.write("tokens", made_from)
    return True


def transformer(place: Place) -> bool:
    lessons = load_lessons(_needed(place.home, "lessons.npz", "tokens"))
    learnt = hashlib.sha256(lessons.tokens.numpy().tobytes()).hexdigest()
    if (place.transformer / "checkpoint.pt").exists() and not place.stamps.done("transformer", learnt):
        raise Problem(
            "the tokens are not those that this transformer has learnt", f"move {place.transformer} away"
        )
    place.stamps.write("transformer", learnt)
    found = drawings.load(place.drawings)
    plan = place.settings.transformer
    look = _look(place, lessons, evaluate.References(found, lessons))
    done = train_transformer(place.transformer, lessons, plan, look, place.device)
    network, made = _trained(place, lessons)
    export.write_transformer(place.weights.transformer, network, plan.size, lessons, made)
    return done


def _trained(place: Place, lessons: Lessons) -> tuple[Network, dict[str, object]]:
    """The transformer with averaged weights, and what the card states of it."""
    plan = place.settings.transformer
    network = Network(plan.size, len(lessons.words))
    network.load_state_dict(averaged_state(place.transformer))
    return network, _made(place.transformer, plan.plan.seed)


def denoiser(place: Place) -> bool:
    lessons = load_lessons(_needed(place.home, "lessons.npz", "tokens"))
    _needed(place.transformer, "checkpoint.pt", "transformer")
    _needed(place.home, export.TOKENIZER, "tokenizer")
    network, made = _trained(place, lessons)
    size, plan = place.settings.transformer.size, place.settings.denoiser
    # Pictures to learn from are sampled by the plain weights, whatever is beside them by now.
    plain = evaluate.Weights(place.denoiser / export.TRANSFORMER, place.weights.tokenizer)
    export.write_transformer(plain.transformer, network, size, lessons, made)
    subject = evaluate.subject_of(plain, ["-"], str(place.device))
    bare = Condition(False, 1.0)
    sampled = evaluate.sample(place.denoiser / "samples", subject, bare, place.settings.pictures)
    learnt = hashlib.sha256(sampled.tobytes()).hexdigest()
    if (place.denoiser / "checkpoint.pt").exists() and not place.stamps.done("denoiser", learnt):
        raise Problem("the denoiser was trained for another transformer", f"move {place.denoiser} away")
    place.stamps.write("denoiser", learnt)
    job = DenoiserJob(network, lessons, torch.from_numpy(sampled).long(), plan, place.device)
    done = train_denoiser(place.denoiser, job)
    job.network.load_state_dict(averaged_state(place.denoiser))
    its = _made(place.denoiser, plan.plan.seed)
    network = network.cpu()
    export.write_transformer(place.weights.transformer, network, size, lessons, made, job.network.cpu(), its)
    return done


def _look(
    place: Place, lessons: Lessons, references: evaluate.References
) -> Callable[[nn.Module], dict[str, float]]:
    """Recall of a few names, sampled with the averaged weights by the package itself."""
    folder = place.transformer / "look"
    names = spread(lessons.names, place.settings.looked_at)
    weights = evaluate.Weights(folder / export.TRANSFORMER, place.weights.tokenizer)

    def look(averaged: nn.Module) -> dict[str, float]:
        assert isinstance(averaged, Network)
        export.write_transformer(weights.transformer, averaged, averaged.size, lessons, {})
        asked = [(name, name, None) for name in names]
        share, _ = evaluate.recall(
            folder / "samples", weights, references, asked, 1, GUIDANCE, str(place.device)
        )
        shutil.rmtree(folder / "samples")
        return {"recall": share}

    return look


def evaluated(place: Place) -> bool:
    lessons = load_lessons(_needed(place.home, "lessons.npz", "tokens"))
    _needed(place.home, export.TRANSFORMER, "transformer")
    _needed(place.home, export.TOKENIZER, "tokenizer")
    report(
        place.home / "evaluation",
        place.weights,
        drawings.load(place.drawings),
        lessons,
        place.settings.seeds,
        place.most_names,
        str(place.device),
    )
    return True


def install(place: Place) -> None:
    """Weights and their card into the package, their names, pictures and curve into the documentation.

    Raises `Problem`, before anything is written, where a part is missing or the figures are of other weights.
    """
    for name, step in (
        (export.TOKENIZER, "tokenizer"),
        ("lessons.npz", "tokens"),
        (export.TRANSFORMER, "transformer"),
        (f"denoiser/{CURVE}", "denoiser"),
        (EVALUATION, "evaluate"),
        (SHEET, "evaluate"),
    ):
        _needed(place.home, name, step)
    with safe_open(place.weights.transformer, "pt") as file:
        if "denoising" not in file.metadata():
            raise Problem(f"{place.weights.transformer} has no denoiser", "run `make.py denoiser` first")
    figures = json.loads((place.home / EVALUATION).read_text(encoding="utf-8"))
    if figures.get("weights") != evaluate.fingerprints(place.weights):
        raise Problem("the figures are of other weights", "run `make.py evaluate` again")
    text = card(place.home, figures, place.settings.side)
    page = names_page(load_lessons(place.home))
    docs = ROOT / "docs"
    for source, target in (
        (place.weights.transformer, BUILTIN_MODEL),
        (place.weights.tokenizer, BUILTIN_TOKENIZER),
        (place.denoiser / CURVE, docs / "measured" / "denoiser.png"),
    ):
        shutil.copyfile(source, target)
        print(target)
    (BUILTIN_MODEL.parent / "MODEL_CARD.md").write_text(text, encoding="utf-8")
    (docs / "builtin_names.md").write_text(page, encoding="utf-8")
    with Image.open(place.home / SHEET) as sheet:
        sheet.convert("RGB").save(docs / "pictures" / "builtin.jpg", quality=85, optimize=True)


STEPS: dict[str, Callable[[Place], bool]] = {
    "data": data,
    "tokenizer": tokenizer,
    "tokens": tokens,
    "transformer": transformer,
    "denoiser": denoiser,
    "evaluate": evaluated,
}


def run(arguments: Sequence[str], about: str | None) -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=[*STEPS, "install", "all"])
    parser.add_argument(
        "--home", type=Path, default=HOME, help="where everything is kept (default: %(default)s)"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--steps", type=int, help="of one of the trainings, instead of the published")
    parser.add_argument("--names", type=int, default=100_000, help="evaluate so many names, not all")
    parser.add_argument("--smoke", action="store_true", help="a few steps on a handful of shapes")
    options = parser.parse_args(arguments)
    place = Place(
        options.home, _settings(options), torch.device(options.device), options.smoke, options.names
    )
    try:
        if options.step == "install":
            install(place)
            return 0
        for name, step in STEPS.items():
            if options.step in (name, "all"):
                print(f"== {name}", flush=True)
                if not step(place):
                    return 1
    except (Problem, CheckpointError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _settings(options: argparse.Namespace) -> settings.Settings:
    if options.smoke:
        return settings.smoke(options.seed)
    steps = {}
    if options.steps is not None and options.step in ("tokenizer", "transformer", "denoiser"):
        steps = {f"{options.step}_steps": options.steps}
    return settings.full(seed=options.seed, **steps)


def _needed(folder: Path, name: str, step: str) -> Path:
    if not (folder / name).exists():
        raise Problem(f"{folder / name} is not there", f"run `make.py {step}` first")
    return folder


def _made(run: Path, seed: int) -> dict[str, object]:
    """What the card states."""
    progress = progress_of(run)
    return {
        "commit": progress.commit or commit(),
        "seed": seed if progress.seed is None else progress.seed,
        "steps": progress.step,
        "hours": round(progress.seconds / 3600, 2),
    }
