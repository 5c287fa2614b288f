"""The state of one decode: tokens on the device, lanes on the host, and the step that moves both."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .codebook import Codebook
from .decoders import Decoder
from .drafts import Drafts
from .errors import NonFiniteLogits
from .initialisers import Frontier
from .lanes import Lanes, Stream
from .randomness import SharedNoise, UniformStream
from .sampling import SamplingSettings, warp
from .schedules import StepPlan
from .step import Step, Uniforms
from .target import TargetModel
from .trace import Trace


class Run:
    """One lane an image. Tokens, fixed and drafted alike, live in one buffer [B, slots]: rollback is
    overwriting."""

    def __init__(
        self,
        target: TargetModel,
        decoder: Decoder,
        sampling: SamplingSettings,
        seeds: list[int],
        kept: np.ndarray,  # [B, cells] int64, -1 where to decode
        codebook: Tensor | None = None,  # [V, C]
    ) -> None:
        self.codebook = None if codebook is None else Codebook(codebook.to(target.device))
        self.target, self.decoder, self.sampling = target, decoder, sampling
        self.grid, self.device = target.grid, target.device
        self.schedule, self.window = decoder.schedule, decoder.schedule.window
        self.drafting = self.schedule.drafting and self.window > 0
        batch, length = len(seeds), self.grid.length
        self.stream = Stream(self.grid, kept)
        images = np.arange(batch)
        first = self.stream.next_unknown(images, np.zeros(batch, np.int64))
        self.lanes = Lanes(images, first, np.zeros(batch, np.int64))
        self.cache_slots = self.schedule.cache_slots(self.grid, self.stream.longest_known_run() + 1)
        padding = ((0, 0), (0, self.cache_slots - length))
        self.tokens = self._upload(np.pad(self.stream.tokens.clip(min=0), padding))  # [B, slots]
        self.known = self._upload(np.pad(self.stream.known, padding))  # [B, slots] bool
        self.drafts: Drafts | None = None
        self.seeds = seeds
        self.noise: SharedNoise | None = None
        self.uniforms = [UniformStream(seed) for seed in seeds]
        self.step_of = np.zeros((batch, length), np.int64)
        cells = np.zeros((batch, self.grid.rows, self.grid.cols), np.int64)
        self.trace = Trace(decoder.describe(), decoder.promise, seeds, cells, passes_of=[0] * batch)

    @property
    def open(self) -> bool:
        """Whether any image still lacks a token."""
        return bool((self.lanes.length < self.grid.length).any())

    def prefill_plan(self) -> StepPlan:
        """The prefill as a step: it feeds nothing of the stream and emits the first token, where that is not
        given."""
        none = np.zeros(len(self.lanes), np.int64)
        return StepPlan(0, 0, np.zeros((len(self.lanes), 0), np.int64), none, none, self.lanes.length == 0, 0)

    def forward(self) -> tuple[Tensor, StepPlan]:
        """Feed the next step: guided logits [L, D + 1, V] after the last pending token and each draft."""
        plan = self.schedule.plan(self.lanes, self.grid, self.cache_slots)
        slots = self._upload(plan.slots)
        inputs = self.tokens[self._upload(self.lanes.image)[:, None], slots]
        positions = slots.clamp(max=self.grid.length - 1)
        logits = self.target.forward(inputs, positions, slots, self.schedule.visible(slots, plan.extent))
        return logits[:, plan.pending - 1 : plan.pending + plan.drafts], plan

    def settle(
        self,
        logits: Tensor,  # [L, D + 1, V]
        plan: StepPlan,
    ) -> None:
        """Verify, commit, redraft. Reads from the device once."""
        lanes, rows = self.lanes, np.arange(plan.drafts + 1)
        where = lanes.length[:, None] + rows  # [L, D + 1] stream position of each row
        step = self._step(logits, plan, where)
        verdict = self.decoder.verifier.verify(step)
        redrafts = self.decoder.redrafter.redraft(step) if self.drafting else None
        healthy = torch.isfinite(logits.amax(-1)).all(-1)
        accepted, finite = torch.stack([verdict.accepted, healthy.to(torch.int64)]).cpu().numpy()
        self._check(finite.astype(bool) | ~plan.emits)
        self._write(step, verdict.accepted, verdict.emitted, redrafts, plan, where)
        self._advance(plan, accepted)
        if redrafts is not None and self.open:
            self._carry(step, redrafts, plan, where)
        self._drop_finished()

    def _step(self, logits: Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        laws = warp(logits, self.sampling)
        images = self.lanes.image
        drafts = Drafts.none(laws) if self.drafts is None else self.drafts.first(plan.drafts)
        inside = np.minimum(where, self.grid.length - 1)
        is_draft = where[:, :-1] < (self.lanes.length + plan.counts)[:, None]
        known = self.stream.known[images[:, None], inside[:, :-1]] & is_draft
        if self.noise is None:
            self.noise = SharedNoise(self.seeds, self.target.vocabulary, laws.dtype, self.device)
        noise = self.noise

        def make_noise() -> Tensor:
            return noise.at(images, self.stream.cell_of[inside])

        testable, known = self._upload(is_draft & ~known), self._upload(known)
        return Step(drafts, laws, testable, known, make_noise, self._draw, self.codebook)

    def _draw(self) -> Uniforms:
        w = self.window
        numbers = self._upload(np.stack([self.uniforms[image].take(3 * w + 2) for image in self.lanes.image]))
        coins, redraws, fresh, emission = numbers.split([w, w + 1, w, 1], dim=1)
        return Uniforms(coins, redraws, emission[:, 0], fresh)

    def _check(self, healthy: np.ndarray) -> None:
        if not healthy.all():
            sick = self.lanes.image[~healthy].tolist()
            filled = self.filled()[sick[0]]
            raise NonFiniteLogits(self.trace.passes + 1, sick, filled, self.grid.cells)

    def _write(
        self,
        step: Step,
        accepted: Tensor,  # [L]
        emitted: Tensor,  # [L]
        redrafts: Drafts | None,
        plan: StepPlan,
        where: np.ndarray,  # [L, D + 1]
    ) -> None:
        """Put the emitted token and the redrafts behind the accepted drafts; known tokens stay as they
        are."""
        row = torch.arange(plan.drafts + 1, device=self.device)
        at = self._upload(self.lanes.image)[:, None], self._upload(where)
        old = self.tokens[at]
        new = old if redrafts is None else torch.where(row > accepted[:, None], redrafts.tokens, old)
        new = torch.where(row == accepted[:, None], emitted[:, None], new)
        keep = self.known[at] | self._upload(~plan.emits)[:, None]
        self.tokens[at] = torch.where(keep, old, new)

    def _advance(self, plan: StepPlan, accepted: np.ndarray) -> None:
        """Move the lanes past what this step committed, and note it in the trace."""
        lanes, end = self.lanes, self.grid.length
        accepted = np.where(plan.emits, accepted, 0)
        before = lanes.length
        committed = np.minimum(before + accepted + 1, end)
        after = np.where(plan.emits, self.stream.next_unknown(lanes.image, committed), before)
        lanes.cached = lanes.cached + plan.fed + accepted
        lanes.length = after
        number = self.trace.passes + 1
        position = np.arange(end)[None]
        fixed = (position >= before[:, None]) & (position < after[:, None]) & ~self.stream.known[lanes.image]
        self.step_of[lanes.image] = np.where(fixed, number, self.step_of[lanes.image])
        self.trace.step_of[:] = self.step_of[:, self.stream.position_of_cell].reshape(
            self.trace.step_of.shape
        )
        history = np.full(self.trace.batch, -1)
        history[lanes.image] = np.where(plan.emits, accepted, -1)
        self.trace.accepted.append(history.tolist())
        for image in lanes.image[(before < end) & (after == end)].tolist():
            self.trace.passes_of[image] = number
        if self.noise is not None:
            for image, position in zip(lanes.image.tolist(), after.tolist(), strict=True):
                self.noise.forget(image, int(self.stream.cell_of[min(position, end - 1)]))

    def _carry(self, step: Step, redrafts: Drafts, plan: StepPlan, where: np.ndarray) -> None:
        """Drafts of the next step: redrafts that still lie ahead, then new positions by the initialiser."""
        lanes, end = self.lanes, self.grid.length
        width = int(np.minimum(self.window, end - lanes.length).max())
        shift = np.where(
            plan.emits, lanes.length - where[:, 0], plan.drafts + 1
        )  # a lane that only fed starts anew
        columns = shift[:, None] + np.arange(width)  # [L, W'] row of this step at each new column
        fresh = columns > plan.drafts
        ahead = lanes.length[:, None] + np.arange(width)  # may reach into scratch behind the stream
        edge = np.minimum(
            lanes.length + np.maximum(plan.drafts + 1 - shift, 0), end - 1
        )  # first position never tried
        frontier = self._frontier(step, plan, edge, np.minimum(ahead, end - 1))
        new = self.decoder.initialiser.initialise(frontier)
        self.drafts = redrafts.carry(self._upload(columns), new)
        at = self._upload(lanes.image)[:, None], self._upload(ahead)
        put = self._upload(fresh) & ~self.known[at]
        self.tokens[at] = torch.where(put, self.drafts.tokens, self.tokens[at])

    def _frontier(self, step: Step, plan: StepPlan, edge: np.ndarray, positions: np.ndarray) -> Frontier:
        image = self._upload(self.lanes.image)
        cell_before = self.stream.position_of_cell[self.stream.cell_of[np.maximum(edge - 1, 0)]]
        rows_up = np.maximum(positions - edge[:, None], 0) // self.grid.stride + 1  # to a row that was tried
        above = positions - rows_up * self.grid.stride
        above = np.where(above < 0, cell_before[:, None], above)
        uniforms = step.uniforms.fresh[:, : positions.shape[1]] if self.decoder.initialiser.draws else None
        return Frontier(
            left=self.tokens[image, self._upload(cell_before)],
            above=self.tokens[image[:, None], self._upload(above)],
            last_law=step.law_after(self._upload(plan.counts)),
            uniforms=uniforms,
        )

    def _drop_finished(self) -> None:
        """Take finished images out of the batch, unless the shape of a forward is to stay."""
        going = np.flatnonzero(self.lanes.length < self.grid.length)
        if self.schedule.fixed_shapes or not 0 < len(going) < len(self.lanes):
            return
        self.target.retain(going.tolist())
        self.lanes = self.lanes.take(going)
        if self.drafts is not None:
            self.drafts = self.drafts.of_lanes(self._upload(going))

    def filled(self) -> list[int]:
        """Fixed tokens of each image, kept ones included."""
        fixed = (self.step_of > 0) | self.stream.known
        return fixed[:, self.stream.position_of_cell].sum(1).tolist()

    def grids(self) -> Tensor:
        """Tokens so far [B, rows, cols] int64 on the CPU, -1 where none is fixed."""
        cells = self.stream.position_of_cell
        fixed = torch.from_numpy(((self.step_of > 0) | self.stream.known)[:, cells])
        tokens = self.tokens[:, self._upload(cells)].cpu()
        return torch.where(fixed, tokens, -1).view(len(self.seeds), self.grid.rows, self.grid.cols)

    def _upload(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
