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
from .lanes import FRONTIER, NOTHING, Lanes, Stream
from .randomness import SharedNoise, UniformStream
from .sampling import SamplingSettings, warp
from .schedules import StepPlan, prefill_plan
from .step import Step, Uniforms
from .target import TargetModel
from .trace import Trace


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
        self.drafting = self.schedule.drafting and self.window > 0
        self.codebook = codebook and codebook.on(target.device)
        self.stream = Stream(self.grid, kept)
        self.lanes = self.schedule.open(self.stream)
        self.cache_slots = self.schedule.cache_slots(self.stream)
        padding = ((0, 0), (0, self.cache_slots + 1 - self.grid.length))
        self.tokens = self._upload(np.pad(self.stream.tokens.clip(min=0), padding))  # [B, slots + 1]
        self.drafts: Drafts | None = None
        self.noise: SharedNoise | None = None
        self.uniforms = [UniformStream(seed) for seed in seeds]
        self.step_of = np.zeros((len(seeds), self.grid.length), np.int64)
        cells = np.zeros((len(seeds), self.grid.rows, self.grid.cols), np.int64)
        self.trace = Trace(decoder.describe(), decoder.promise, seeds, cells, passes_of=[0] * len(seeds))

    @property
    def open(self) -> bool:
        """Whether any image still lacks a token."""
        return not self.lanes.done.all()

    def prefill_plan(self) -> StepPlan:
        return prefill_plan(self.lanes)

    def forward(self) -> tuple[Tensor, StepPlan]:
        """Feed the next step: guided logits [L, D + 1, V] after the last pending token and each draft."""
        lanes, images = self.lanes, len(self.lanes.images)
        plan = self.schedule.plan(lanes, self.stream, self.cache_slots)
        sources, positions, slots = self._upload(
            np.stack([plan.sources, plan.positions, plan.slots])
        )  # [L, F]
        inputs = self.tokens[self._upload(lanes.image)[:, None], sources]
        visible = self.schedule.visible(plan, lanes, slots)
        # Lanes of one image are one row of the model's batch: [L, F] -> [B, R * F].
        logits = self.target.forward(
            inputs.view(images, -1),
            positions.view(images, -1),
            slots.view(images, -1),
            visible.view(images, -1, plan.extent),
        )
        logits = logits.view(*slots.shape, -1)
        return logits[:, plan.pending - 1 : plan.pending + plan.drafts], plan

    def settle(
        self,
        logits: Tensor,  # [L, D + 1, V]
        plan: StepPlan,
    ) -> None:
        """Verify, commit, redraft. Reads from the device once."""
        lanes = self.lanes
        where = lanes.length[:, None] + np.arange(plan.drafts + 1)  # [L, D + 1] stream position of each row
        step = self._step(logits, plan, where)
        verdict = self.decoder.verifier.verify(step)
        redrafts = self.decoder.redrafter.redraft(step) if self.drafting else None
        healthy = torch.isfinite(logits.amax(-1)).all(-1)
        accepted, finite = torch.stack([verdict.accepted, healthy.to(torch.int64)]).cpu().numpy()
        self._check(finite.astype(bool) | lanes.done)
        accepted = np.where(plan.commits == NOTHING, 0, accepted)
        self._write(verdict.emitted, redrafts, plan, where, accepted)
        shift = self._advance(plan, accepted)
        self.lanes, origin = self.schedule.advance(lanes, self.stream)
        if redrafts is not None and self.open:
            self._carry(step, redrafts, plan, lanes, origin, shift)
        kept = np.flatnonzero(np.isin(lanes.images, self.lanes.images))
        if len(kept) < len(lanes.images):
            self.target.retain(kept.tolist())

    def _step(self, logits: Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        laws, lanes = warp(logits, self.sampling), self.lanes
        drafts = Drafts.none(laws) if self.drafts is None else self.drafts.first(plan.drafts)
        inside = np.minimum(where, np.minimum(lanes.end, self.grid.length)[:, None] - 1)
        is_draft = np.arange(plan.drafts) < plan.counts[:, None]
        known = self.stream.known[lanes.image[:, None], inside[:, :-1]] & is_draft
        if self.noise is None:
            self.noise = SharedNoise(self.seeds, self.target.vocabulary, laws.dtype, self.device)
        noise = self.noise

        def make_noise() -> Tensor:
            return noise.at(lanes.image, self.stream.cell_of[inside])

        testable, known = self._upload(is_draft & ~known), self._upload(known)
        return Step(drafts, laws, testable, known, make_noise, self._draw, self.codebook)

    def _draw(self) -> Uniforms:
        w = self.window
        coins, redraws, emission = self._numbers(self.lanes, 2 * w + 2).split([w, w + 1, 1], dim=1)
        return Uniforms(coins, redraws, emission[:, 0])

    def _numbers(self, lanes: Lanes, count: int) -> Tensor:
        """The next `count` uniform numbers for each lane, from its image's stream: [L, count]. Idle lanes
        take none."""
        numbers = np.zeros((len(lanes), count), np.float32)
        for i in np.flatnonzero(lanes.begin < self.grid.length).tolist():
            numbers[i] = self.uniforms[lanes.image[i]].take(count)
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
    ) -> None:
        """Put the emitted token and the redrafts behind the accepted drafts; known tokens stay as they
        are."""
        row = np.arange(plan.drafts + 1)
        emits = (row == accepted[:, None]) & (plan.commits == FRONTIER)[:, None]
        # Rows behind a lane's own drafts, and lanes that have not fed all their pending tokens, have no law
        # to trust.
        usable = (row <= plan.counts[:, None]) & (plan.cached >= self.lanes.length)[:, None]
        writes = usable & (emits if redrafts is None else (row >= accepted[:, None]))
        new = emitted[:, None].expand(where.shape)
        if redrafts is not None:
            new = torch.where(self._upload(emits), new, redrafts.tokens)
        self._put(self.lanes, where, writes, new)

    def _put(self, lanes: Lanes, where: np.ndarray, chosen: np.ndarray, tokens: Tensor) -> None:
        """Write `tokens` [L, M] at stream positions `where`, where chosen, undecided beforehand and the
        lane's own."""
        inside = np.minimum(where, self.grid.length - 1)
        known = self.stream.known[lanes.image[:, None], inside]
        nowhere = self.tokens.shape[1] - 1
        at = np.where(chosen & ~known & (where < lanes.end[:, None]), where, nowhere)
        self.tokens[self._upload(lanes.image)[:, None], self._upload(at)] = tokens

    def _advance(self, plan: StepPlan, accepted: np.ndarray) -> np.ndarray:
        """Move the lanes past what this step committed, note it in the trace; how far each lane moved:
        [L]."""
        lanes, before = self.lanes, self.lanes.length
        committed = before + accepted + (plan.commits == FRONTIER)
        after = np.minimum(self.stream.next_unknown(lanes.image, committed), lanes.end)
        after = np.where(plan.commits == NOTHING, before, after)
        lanes.cached = plan.cached + accepted
        lanes.length = after
        number = self.trace.passes + 1
        position = np.arange(self.grid.length)[None]
        fixed = (position >= before[:, None]) & (position < after[:, None]) & ~self.stream.known[lanes.image]
        lane, at = np.nonzero(fixed)
        self.step_of[lanes.image[lane], at] = number
        self.trace.step_of[:] = self.step_of[:, self.stream.position_of_cell].reshape(
            self.trace.step_of.shape
        )
        history = np.full(self.trace.batch, -1)
        history[lanes.image[~lanes.done | (before < lanes.end)]] = 0
        np.add.at(history, lanes.image, accepted)
        self.trace.accepted.append(history.tolist())
        for image, filled in enumerate(self.filled()):
            if filled == self.grid.cells and not self.trace.passes_of[image]:
                self.trace.passes_of[image] = number
        if self.noise is not None:
            for image, least in zip(
                lanes.images.tolist(), after.reshape(-1, lanes.per_image).min(1).tolist(), strict=True
            ):
                self.noise.forget(image, int(self.stream.cell_of[min(least, self.grid.length - 1)]))
        return after - before

    def _carry(
        self, step: Step, redrafts: Drafts, plan: StepPlan, old: Lanes, origin: np.ndarray, shift: np.ndarray
    ) -> None:
        """Drafts of the next step: redrafts that still lie ahead, then new positions by the initialiser."""
        lanes = self.lanes
        width = int(np.minimum(self.window, lanes.end - lanes.length).max())
        # A lane that opens only now has no drafts; it borrows the last law of its image's first lane.
        block = np.searchsorted(old.images, lanes.image) * old.per_image
        source = np.where(origin < 0, block, origin)
        tried = (origin >= 0) & (plan.cached >= old.length - shift)[source]
        # Columns of this step's rows that are still ahead of each lane; shift is 0 where nothing was
        # committed.
        ahead = np.where(tried, plan.counts[source] + 1 - shift[source], 0).clip(min=0)
        column = np.arange(width)[None]
        fresh = column >= ahead[:, None]
        columns = np.where(fresh, plan.drafts + 1, shift[source][:, None] + column)
        positions = lanes.length[:, None] + column
        frontier = self._frontier(step, plan, lanes.length + ahead, positions, source)
        moved = (
            redrafts
            if np.array_equal(source, np.arange(len(old)))
            else redrafts.of_lanes(self._upload(source))
        )
        self.drafts = moved.carry(self._upload(columns), self.decoder.initialiser.initialise(frontier))
        self._put(lanes, positions, fresh, self.drafts.tokens)

    def _frontier(
        self, step: Step, plan: StepPlan, edge: np.ndarray, positions: np.ndarray, source: np.ndarray
    ) -> Frontier:
        """What the initialiser sees: `edge` [L] is each lane's first position never tried."""
        lanes, last = self.lanes, self.grid.length - 1
        cell_before = self.stream.position_of_cell[self.stream.cell_of[(edge - 1).clip(0, last)]]
        rows_up = np.maximum(positions - edge[:, None], 0) // self.grid.stride + 1  # to a row that was tried
        above = np.minimum(positions, last) - rows_up * self.grid.stride
        above = np.where(above < 0, cell_before[:, None], above)
        # What lies before the first cell of a lower row may not be there yet.
        starts = (edge <= lanes.end - self.grid.cols) & (lanes.commits != FRONTIER)
        left = np.where(starts, above[:, 0] if above.shape[1] else cell_before, cell_before)
        image = self._upload(lanes.image)
        draws = self.decoder.initialiser.draws
        return Frontier(
            left=self.tokens[image, self._upload(left)],
            above=self.tokens[image[:, None], self._upload(above)],
            last_law=step.law_after(self._upload(plan.counts))[self._upload(source)],
            uniforms=self._numbers(lanes, self.window)[:, : positions.shape[1]] if draws else None,
        )

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
