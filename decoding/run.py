"""The state of one decode: tokens on the device, lanes on the host, and the step that moves both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .codebook import Codebook
from .decoders import Decoder
from .device import upload
from .drafts import Drafts
from .errors import NonFiniteLogits
from .initialisers import Frontier
from .lanes import FRONTIER, NOTHING, Lanes, Stream, neighbours
from .promises import promise_given
from .randomness import SharedNoise, UniformStream
from .sampling import SamplingSettings, entropy, warp
from .schedules import StepPlan, prefill_plan
from .step import Step, Uniforms
from .target import TargetModel
from .trace import DecodeResult, Trace
from .verifiers import Verdict


class Run:
    """Tokens, fixed and drafted alike, live in one buffer [B, slots + 1]: rollback is overwriting.

    The last column of the buffer takes what is to be written nowhere.
    """

    def __init__(
        self,
        target: TargetModel,
        decoder: Decoder,
        sampling: SamplingSettings,
        seeds: list[int],
        kept: np.ndarray,  # [B, cells] int64, -1 where to decode
        codebook: Codebook | None = None,
    ) -> None:
        self.target, self.decoder, self.sampling = target, decoder, sampling
        self.grid, self.device, self.seeds = target.grid, target.device, seeds
        self.schedule, self.window = decoder.schedule, decoder.schedule.window
        self.codebook = codebook and codebook.on(target.device)
        self.stream = Stream(self.grid, kept)
        self.cache_slots = self.schedule.cache_slots(self.stream)
        padding = ((0, 0), (0, self.cache_slots + 1 - self.grid.length))
        self.tokens = self._upload(np.pad(self.stream.tokens.clip(min=0), padding))  # [B, slots + 1]
        self.entropy = torch.full(self.tokens.shape, torch.nan, device=self.device)  # bits, where fixed
        self.given = kept >= 0  # [B, cells]
        self._open_lanes(self.schedule.open(self.stream))
        self.drafts: Drafts | None = None
        self.noise: SharedNoise | None = None
        self.uniforms = [UniformStream(seed) for seed in seeds]
        cells = np.zeros((len(seeds), self.grid.rows, self.grid.cols), np.int64)
        promise = promise_given(decoder.promise, self.given)
        self.trace = Trace(decoder.describe(), promise, seeds, cells)

    def _open_lanes(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.image = self._upload(lanes.image)  # [L], on the device

    @property
    def finished(self) -> bool:
        """Whether every token of every image is fixed."""
        return min(self.filled()) == self.grid.cells

    def prefill(self, prompts: Sequence[Any]) -> None:
        """The first forward: the prompts in, each image's first token out where it is not given."""
        logits = self.target.prefill(prompts, self.cache_slots)
        self._settle(logits[:, None], prefill_plan(self.lanes))

    def step(self) -> None:
        """One more forward, and what follows from it."""
        lanes, images = self.lanes, len(self.lanes.images)
        plan = self.schedule.plan(lanes, self.stream, self.cache_slots)
        sources, positions, slots = self._upload(np.stack([plan.sources, plan.positions, plan.slots]))
        inputs = self._inputs(plan, sources)
        visible = self.schedule.visible(plan, lanes, slots)
        # Lanes of one image are one row of the model's batch: [L, F] -> [B, R * F].
        fed = (inputs, positions, slots)
        fed = (array.reshape(images, -1) for array in fed)
        logits = self._forward(plan, *fed, visible.reshape(images, -1, plan.extent))
        logits = logits.view(*slots.shape, -1)
        self._settle(logits[:, plan.pending - 1 : plan.pending + plan.drafts + plan.extra], plan)

    def _inputs(
        self,
        plan: StepPlan,
        sources: Tensor,  # [L, F] int64
    ) -> Tensor:
        """Tokens that the plan feeds: [L, F]."""
        return self.tokens[self.image[:, None], sources]

    def _forward(
        self,
        plan: StepPlan,
        inputs: Tensor,  # [B, N]
        positions: Tensor,  # [B, N]
        slots: Tensor,  # [B, N]
        visible: Tensor,  # [B, N, K]
    ) -> Tensor:
        """Guided logits [B, N, V]."""
        return self.target.forward(inputs, positions, slots, visible)

    def _settle(
        self,
        logits: Tensor,  # [L, D + 1, V], extra inputs' behind them
        plan: StepPlan,
    ) -> None:
        """Verify, commit, redraft. Reads from the device once."""
        lanes = self.lanes
        where = lanes.length[:, None] + np.arange(plan.drafts + 1)  # [L, D + 1] stream position of each row
        # A lane that still has pending tokens to feed has no law at its first unfixed position.
        ready = plan.cached >= lanes.length
        step = self._make_step(logits, plan, where)
        verdict = self.decoder.verifier.verify(step)
        step = self._follow(step, verdict, plan, where)
        redrafts = self._redraft(step, plan, where) if self.schedule.drafting else None
        healthy = torch.isfinite(logits.amax(-1)).all(-1)
        accepted, finite = torch.stack([verdict.accepted, healthy.to(torch.int64)]).cpu().numpy()
        self._check(finite.astype(bool) | lanes.done)
        accepted = np.where(plan.commits == NOTHING, 0, accepted)
        self._note_entropy(step.target_laws, where, accepted)
        self._write(verdict.emitted, redrafts, plan, where, accepted, ready)
        moved = self._advance(plan, accepted)
        following, origin = self.schedule.advance(lanes, self.stream)
        if following is not lanes:
            self._open_lanes(following)
        if redrafts is not None and not self.finished:
            self._carry(step, redrafts, plan, lanes, origin, moved, ready)
        kept = np.flatnonzero(np.isin(lanes.images, following.images))
        if len(kept) < len(lanes.images):
            self.target.retain(kept.tolist())

    def _make_step(self, logits: Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        laws, lanes = warp(logits, self.sampling), self.lanes
        drafts = Drafts.none(laws) if self.drafts is None else self.drafts.first(plan.drafts)
        inside = np.minimum(where, lanes.end[:, None] - 1)
        is_draft = np.arange(plan.drafts) < plan.counts[:, None]
        known = self.stream.known[lanes.image[:, None], inside[:, :-1]] & is_draft
        if self.noise is None:
            self.noise = SharedNoise(self.seeds, self.target.vocabulary, laws.dtype, self.device)
        noise = self.noise

        def make_noise() -> Tensor:
            return noise.at(lanes.image, self.stream.cell_of[inside])

        testable, known = self._upload(np.stack([is_draft & ~known, known]))
        return Step(drafts, laws, testable, known, make_noise, self._draw, self.codebook)

    def _follow(self, step: Step, verdict: Verdict, plan: StepPlan, where: np.ndarray) -> Step:
        """The step as its redrafts see it: the accepted drafts, which lie in place already, lead on to
        them."""
        return step

    def _redraft(self, step: Step, plan: StepPlan, where: np.ndarray) -> Drafts:
        """New drafts for all rows of the step."""
        return self.decoder.redrafter.redraft(step)

    def _draw(self) -> Uniforms:
        w = self.window
        coins, redraws, emission = self._numbers(2 * w + 2).split([w, w + 1, 1], dim=1)
        return Uniforms(coins, redraws, emission[:, 0])

    def _numbers(self, count: int, taking: np.ndarray | np.bool_ = np.True_) -> Tensor:
        """The next `count` uniform numbers for each lane, from its image's stream: [L, count].

        Idle lanes and those not `taking` ([L] bool) take none, so that an image's stream does not depend on
        its neighbours.
        """
        numbers = np.zeros((len(self.lanes), count), np.float32)
        for lane in np.flatnonzero((self.lanes.begin < self.grid.length) & taking).tolist():
            numbers[lane] = self.uniforms[self.lanes.image[lane]].take(count)
        return self._upload(numbers)

    def _check(self, healthy: np.ndarray) -> None:
        if not healthy.all():
            sick = sorted(set(self.lanes.image[~healthy].tolist()))
            raise NonFiniteLogits(self.trace.passes + 1, sick, self.filled()[sick[0]], self.grid.cells)

    def _write(
        self,
        emitted: Tensor,  # [L]
        redrafts: Drafts | None,
        plan: StepPlan,
        where: np.ndarray,  # [L, D + 1]
        accepted: np.ndarray,  # [L]
        ready: np.ndarray,  # [L] bool
    ) -> None:
        """Put the emitted token and the redrafts behind the accepted drafts."""
        row = np.arange(plan.drafts + 1)
        emits = (row == accepted[:, None]) & (plan.commits == FRONTIER)[:, None]
        chosen = emits if redrafts is None else (row >= accepted[:, None]) & (row <= plan.counts[:, None])
        new = emitted[:, None].expand(where.shape)
        if redrafts is not None:
            new = torch.where(self._upload(emits), new, redrafts.tokens)
        self._put(where, chosen & ready[:, None], new)

    def _put(self, where: np.ndarray, chosen: np.ndarray, tokens: Tensor) -> None:
        """Write `tokens` [L, M] at positions `where`: chosen ones, inside the lane, not known beforehand."""
        self.tokens[self.image[:, None], self._columns(where, chosen)] = tokens

    def _columns(self, where: np.ndarray, chosen: np.ndarray) -> Tensor:
        """Columns of the buffers for positions `where` [L, M]; the last where nothing is to be written."""
        lanes = self.lanes
        known = self.stream.known[lanes.image[:, None], np.minimum(where, self.grid.length - 1)]
        nowhere = self.tokens.shape[1] - 1
        return self._upload(np.where(chosen & ~known & (where < lanes.end[:, None]), where, nowhere))

    def _note_entropy(self, laws: Tensor, where: np.ndarray, accepted: np.ndarray) -> None:
        """Of the laws [L, D + 1, V] behind what this step fixes; other places are written again by then."""
        rows = int(accepted.max()) + 1
        at = self._columns(where[:, :rows], np.True_)
        self.entropy[self.image[:, None], at] = entropy(laws[:, :rows]).to(torch.float32)

    def _advance(self, plan: StepPlan, accepted: np.ndarray) -> np.ndarray:
        """Move the lanes past what this step committed, note it in the trace; how far each moved: [L]."""
        lanes, before = self.lanes, self.lanes.length
        committed = before + accepted + (plan.commits == FRONTIER)
        after = np.minimum(self.stream.next_unknown(lanes.image, committed), lanes.end)
        after = np.where(plan.commits == NOTHING, before, after)
        position = np.arange(self.grid.length)
        fixed = (position >= before[:, None]) & (position < after[:, None]) & ~self.stream.known[lanes.image]
        lane, at = np.nonzero(fixed)
        self.trace.add_pass(lanes.image, before < lanes.end, accepted)
        self.trace.fix(lanes.image[lane], self.stream.cell_of[at])
        lanes.cached, lanes.length = plan.cached + accepted, after
        if self.noise is not None:
            first = after.reshape(-1, lanes.per_image).min(1).clip(max=self.grid.length - 1)
            for image, cell in zip(lanes.images.tolist(), self.stream.cell_of[first].tolist(), strict=True):
                self.noise.forget(image, cell)
        return after - before

    def _carry(
        self,
        step: Step,
        redrafts: Drafts,
        plan: StepPlan,
        old: Lanes,
        origin: np.ndarray,  # [L'] which old lane each lane continues, -1: none
        moved: np.ndarray,  # [L] how far each old lane moved
        ready: np.ndarray,  # [L] bool
    ) -> None:
        """Drafts of the next step: redrafts that still lie ahead, then new positions by the initialiser."""
        lanes = self.lanes
        width = int(np.minimum(self.window, lanes.end - lanes.length).max())
        # A lane that opens only now has no drafts; it borrows the last law of its image's first lane.
        block = np.searchsorted(old.images, lanes.image) * old.per_image
        source = np.where(origin < 0, block, origin)
        tried = (origin >= 0) & ready[source]
        # Redrafts that still lie ahead of the lane.
        ahead = np.where(tried, plan.counts[source] + 1 - moved[source], 0).clip(min=0)
        column = np.arange(width)
        fresh = column >= ahead[:, None]
        columns = np.where(fresh, plan.drafts + 1, moved[source][:, None] + column)
        positions = lanes.length[:, None] + column
        source, columns = self._upload(source), self._upload(columns)
        last_law = step.law_after(self._upload(plan.counts))[source]
        frontier = self._frontier(last_law, lanes.length + ahead, positions)
        self.drafts = redrafts.carry(source, columns, self._start(frontier, positions, fresh))
        self._put(positions, fresh, self.drafts.tokens)

    def _start(
        self,
        frontier: Frontier,
        positions: np.ndarray,  # [L, M] of the next drafts
        fresh: np.ndarray,  # [L, M] bool: which were never tried
    ) -> Drafts:
        """Drafts [L, M] of which the fresh ones are used."""
        return self.decoder.initialiser.initialise(frontier)

    def _frontier(
        self,
        last_law: Tensor,  # [L, V]
        edge: np.ndarray,  # [L] first position never tried
        positions: np.ndarray,  # [L, M] of the next drafts
    ) -> Frontier:
        """What the initialiser sees."""
        near = self._upload(neighbours(self.stream, self.lanes, edge, positions))
        tokens = self.tokens[self.image[:, None], near]
        draws = self.decoder.initialiser.draws
        numbers = self._numbers(self.window)[:, : positions.shape[1]] if draws else None
        return Frontier(tokens[:, 0], tokens[:, 1:], last_law, numbers)

    def filled(self) -> list[int]:
        """Fixed tokens of each image, kept ones included."""
        return self._fixed().sum(1).tolist()

    def _fixed(self) -> np.ndarray:
        """[B, cells] bool."""
        return self.given | (self.trace.step_of.reshape(self.trace.batch, -1) > 0)

    def grids(self) -> Tensor:
        """Tokens so far [B, rows, cols] int64 on the CPU, -1 where none is fixed."""
        tokens = self._at_cells(self.tokens)
        return torch.where(torch.from_numpy(self._fixed()).view_as(tokens), tokens, -1)

    def result(self) -> DecodeResult:
        """Of a finished run: its tokens, and its trace with the entropies."""
        self.trace.entropy = self._at_cells(self.entropy).numpy()
        return DecodeResult(self.grids(), self.trace)

    def _at_cells(self, buffer: Tensor) -> Tensor:
        """[B, slots + 1] -> [B, rows, cols] on the CPU."""
        cells = buffer[:, self._upload(self.stream.position_of_cell)]
        return cells.cpu().view(len(self.seeds), self.grid.rows, self.grid.cols)

    def _upload(self, array: np.ndarray) -> Tensor:
        return upload(array, self.device)
