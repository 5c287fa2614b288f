"""A decode whose new drafts are fed as embeddings under noise (SJD2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from .denoising import GaussianNoise, denoised, denoising_model, start_trajectories
from .drafts import Drafts, Trajectories
from .initialisers import Frontier
from .run import Run
from .schedules import StepPlan
from .step import Step
from .target import Noised


class DenoisingRun(Run):
    """Between its start and the pass that first feeds it as a token, a draft is an embedding that loses
    noise.

    Each pass draws its token anew, as in SJD, and the embedding moves towards that token's. Tests stop in
    front of the first draft under noise: all laws up to there were computed on tokens, so they are the
    model's own, whatever it makes of noise.
    """

    def __init__(self, target: Any, *arguments: Any, **others: Any) -> None:
        super().__init__(target, *arguments, **others)
        self.denoiser = denoising_model(target)
        start = self.decoder.initialiser
        assert isinstance(start, GaussianNoise)
        self.steps = start.steps
        levels = start.levels(*self.denoiser.noise_range)
        self.pure = levels[-1]
        self.levels = self._upload(levels)

    def _forward(
        self, plan: StepPlan, inputs: Tensor, positions: Tensor, slots: Tensor, visible: Tensor
    ) -> Tensor:
        if self.drafts is None or not plan.drafts:
            return super()._forward(plan, inputs, positions, slots, visible)
        trajectories = self.drafts.first(plan.drafts).trajectories
        assert trajectories is not None
        around = (plan.pending, inputs.shape[1] - plan.pending - plan.drafts)
        levels = F.pad(self.levels[trajectories.left], around)
        noised = Noised(F.pad(trajectories.embeddings, (0, 0, *around)), levels)
        return self.denoiser.forward_noised(inputs, positions, slots, visible, noised)

    def _make_step(self, logits: Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        step = super()._make_step(logits, plan, where)
        trajectories = step.drafts.trajectories
        if trajectories is not None:
            step.testable &= trajectories.left == 0
        return step

    def _redraft(self, step: Step, plan: StepPlan, where: np.ndarray) -> Drafts:
        redrafts = super()._redraft(step, plan, where)
        # The row behind the last draft was never fed: its embedding is pure noise until now.
        last = np.arange(plan.drafts + 1) == plan.counts[:, None]
        started = self._trajectories(where, last)
        before = step.drafts.trajectories
        if before is not None:
            longer = Trajectories(F.pad(before.embeddings, (0, 0, 0, 1)), F.pad(before.left, (0, 1)))
            started = longer.replaced(self._upload(last), started)
        # A law that is not finite draws a token beyond the vocabulary, which no table has: it is told of
        # later, at the host's one look at the step, and must not end the look-up before.
        tokens = redrafts.tokens.clamp(max=self.target.vocabulary - 1)
        guesses = self.denoiser.clean_embeddings(tokens)
        return replace(redrafts, trajectories=denoised(started, guesses, self.levels))

    def _start(self, frontier: Frontier, positions: np.ndarray, fresh: np.ndarray) -> Drafts:
        drafts = super()._start(frontier, positions, fresh)
        return replace(drafts, trajectories=self._trajectories(positions, fresh))

    def _trajectories(self, positions: np.ndarray, wanted: np.ndarray) -> Trajectories:
        """Pure noise at the wanted of these positions ([L, M]), where no token is known."""
        image, inside = self.lanes.image, np.minimum(positions, self.grid.length - 1)
        wanted = wanted & (positions < self.grid.length) & ~self.stream.known[image[:, None], inside]
        return start_trajectories(
            [self.seeds[one] for one in image.tolist()],
            self.stream.cell_of[inside],
            wanted,
            self.steps,
            self.pure,
            self.denoiser.embedding_width,
            self.device,
        )
