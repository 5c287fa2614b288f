"""The training loop of all three networks: resumable at any step, seeded, with progress and a small plot."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ..problem import Problem
from .origin import commit
from .plot import plot

CURVE = "progress.png"
SAVE_SECONDS = 180
SAY_SECONDS = 15
SMOOTH = 0.98  # of the loss that is shown


@dataclass(frozen=True)
class Plan:
    """How long and how fast. The rate rises over `warm_up` steps and falls to nothing over the last `decay`
    share of them: a later run with fewer or more `steps` ends early or goes on."""

    steps: int
    seed: int
    warm_up: int = 100
    decay: float = 0.3
    average: float = 0.998  # of the weights, for looking and for export
    look_every: int = 1000

    def rate(self, step: int) -> float:
        left = (self.steps - step) / max(1, self.decay * self.steps)
        return min(1.0, (step + 1) / max(1, self.warm_up), left)


class Job(Protocol):
    """What is trained."""

    network: nn.Module
    optimisers: list[torch.optim.Optimizer]

    def loss(self, step: int, rng: torch.Generator) -> Tensor:
        """The loss of one batch, a scalar; draws only from `rng`."""

    def look(self, averaged: nn.Module, step: int) -> dict[str, float]:
        """Figures of the averaged network, for the plot."""


@dataclass
class Progress:
    """What has been done so far; travels in the checkpoint."""

    step: int = 0
    seed: int | None = None  # None in checkpoints that do not say
    commit: str = ""  # at the first step
    seconds: float = 0.0
    losses: list[tuple[int, float]] = field(default_factory=list)
    figures: dict[str, list[tuple[int, float]]] = field(default_factory=dict)


def train(folder: Path, job: Job, plan: Plan) -> bool:
    """Run to the end of the plan; False where a signal stopped it first, with all kept in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    averaged = copy.deepcopy(job.network).requires_grad_(False)
    progress = _resume(folder, job, averaged)
    if progress.step == 0:
        progress.seed, progress.commit = plan.seed, commit()
    if progress.seed not in (None, plan.seed):
        raise Problem(
            f"{folder} was begun with seed {progress.seed}", f"give --seed {progress.seed}, or move it away"
        )
    saved = said = clock = time.monotonic()
    smooth = progress.losses[-1][1] if progress.losses else None
    done_before = progress.step
    started = clock
    with _signals() as stopped:
        while progress.step < plan.steps and not stopped:
            loss = _step(job, plan, progress.step)
            progress.step += 1
            _follow(averaged, job.network, min(plan.average, progress.step / (progress.step + 10)))
            smooth = loss if smooth is None else SMOOTH * smooth + (1 - SMOOTH) * loss
            now = time.monotonic()
            progress.seconds, clock = progress.seconds + now - clock, now
            last = progress.step == plan.steps
            if progress.step % plan.look_every == 0 or last:
                for name, value in job.look(averaged, progress.step).items():
                    progress.figures.setdefault(name, []).append((progress.step, value))
                    print(f"step {progress.step}: {name} {value:.3f}", flush=True)
            if now - said > SAY_SECONDS or last:
                pace = (now - started) / (progress.step - done_before)
                left = pace * (plan.steps - progress.step) / 60
                progress.losses.append((progress.step, smooth))
                print(
                    f"step {progress.step} of {plan.steps}, loss {smooth:.4f}, {pace:.2f} s a step, "
                    f"{left:.0f} min left",
                    flush=True,
                )
                said = now
            if now - saved > SAVE_SECONDS or last:
                _save(folder, job, averaged, progress)
                saved = now
        if stopped:
            _save(folder, job, averaged, progress)
            print(f"stopped at step {progress.step}; the same command goes on from there", flush=True)
    return progress.step >= plan.steps


def averaged_state(folder: Path) -> dict[str, Tensor]:
    """The averaged weights of the latest checkpoint."""
    return _read(folder / "checkpoint.pt", map_location="cpu")["averaged"]


def progress_of(folder: Path) -> Progress:
    """How far the run in `folder` is; nothing done where there is no checkpoint."""
    path = folder / "checkpoint.pt"
    if not path.exists():
        return Progress()
    return Progress(**_read(path, map_location="cpu", mmap=True)["progress"])


def _read(path: Path, **options: Any) -> dict[str, Any]:
    try:
        return torch.load(path, weights_only=True, **options)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise Problem(f"{path} is damaged: {error}", f"move {path.parent} away and train again") from error


def _step(job: Job, plan: Plan, step: int) -> float:
    # Each step has a generator of its own: a resumed run draws what an unbroken one would have drawn.
    rng = torch.Generator().manual_seed(plan.seed * 1_000_003 + step)
    for optimiser in job.optimisers:
        optimiser.zero_grad(set_to_none=True)
        for group in optimiser.param_groups:
            group.setdefault("top_rate", group["lr"])
            group["lr"] = group["top_rate"] * plan.rate(step)
    loss = job.loss(step, rng)
    loss.backward()
    for optimiser in job.optimisers:
        optimiser.step()
    return float(loss.detach())


@torch.no_grad()
def _follow(averaged: nn.Module, network: nn.Module, keep: float) -> None:
    mine, theirs = list(averaged.parameters()), list(network.parameters())
    torch._foreach_lerp_(mine, [weight.detach() for weight in theirs], 1 - keep)
    for old, new in zip(averaged.buffers(), network.buffers(), strict=True):
        old.copy_(new)


def _save(folder: Path, job: Job, averaged: nn.Module, progress: Progress) -> None:
    state: dict[str, Any] = {
        "network": job.network.state_dict(),
        "averaged": averaged.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in job.optimisers],
        "progress": vars(progress),
    }
    torch.save(state, folder / "checkpoint.part")
    os.replace(folder / "checkpoint.part", folder / "checkpoint.pt")
    plot(folder / CURVE, {"loss": progress.losses} | progress.figures)


def _resume(folder: Path, job: Job, averaged: nn.Module) -> Progress:
    path = folder / "checkpoint.pt"
    if not path.exists():
        return Progress()
    place = next(job.network.parameters()).device
    state = _read(path, map_location=place)
    job.network.load_state_dict(state["network"])
    averaged.load_state_dict(state["averaged"])
    for optimiser, kept in zip(job.optimisers, state["optimisers"], strict=True):
        optimiser.load_state_dict(kept)
    return Progress(**state["progress"])


@contextmanager
def _signals() -> Iterator[list[int]]:
    """A list that is no longer empty once the process was asked to end, so that a step is never cut in
    two."""
    caught: list[int] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda number, frame: caught.append(number)) for kind in kinds]
    try:
        yield caught
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
