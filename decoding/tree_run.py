"""A decode whose steps feed a tree of drafts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .branches import Branches, Candidates, runners_up, without_replacement
from .redrafters import SharedNoiseDraw
from .run import Run
from .sampling import warp
from .schedules import StepPlan
from .step import Step
from .tree import Tree, TreeWindow
from .verifiers import Verdict


class TreeRun(Run):
    """Grows the tree before a forward; after it, puts the winning branch where the chain lies.

    Siblings are drawn at the start of a step, from the declared laws of its drafts. From then on a branch is
    like any window: its tokens in the buffer, its keys in their slots, its laws before the redrafter. All of
    that is done on the device, before the host knows which branch won.
    """

    schedule: TreeWindow
    _candidates: Candidates

    def _inputs(self, plan: StepPlan, sources: Tensor) -> Tensor:
        inputs = super()._inputs(plan, sources)
        if plan.extra:
            tree = self.schedule.tree(plan.drafts)
            self._candidates = self._grow(tree, plan)
            # What is no candidate is fed as a copy of the chain's token, known ones among them.
            chain = inputs[:, plan.pending : plan.pending + tree.depth, None]
            tokens = torch.where(self._candidates.exist, self._candidates.tokens, chain)
            column, choice = self._upload(np.stack([tree.level[tree.extra] - 1, tree.choice[tree.extra]]))
            inputs[:, inputs.shape[1] - plan.extra :] = tokens[:, column, choice]
        return inputs

    def _grow(self, tree: Tree, plan: StepPlan) -> Candidates:
        """Candidates of the columns of the tree; none where a token is known."""
        lanes, drafts = self.lanes, self.drafts
        assert drafts is not None and self.noise is not None  # there are drafts, so there was a step
        drafts = drafts.first(tree.depth)
        where = np.minimum(lanes.length[:, None] + np.arange(tree.depth), self.grid.length - 1)
        if isinstance(self.decoder.redrafter.draw, SharedNoiseDraw):
            noise = self.noise.at(lanes.image, self.stream.cell_of[where])
            candidates = runners_up(drafts, noise, tree.siblings)
        else:
            candidates = without_replacement(drafts, self._sibling_numbers(tree, plan))
        unknown = self._upload(~self.stream.known[lanes.image[:, None], where])
        return Candidates(candidates.tokens, candidates.exist & unknown[..., None])

    def _sibling_numbers(self, tree: Tree, plan: StepPlan) -> Tensor:
        """A uniform number for each second and later candidate: [L, d, K - 1].

        Drawn for the whole tree even where the window has become shorter, as with `Uniforms`; none for a
        lane without drafts, which alone would have no tree.
        """
        depth, others = self.schedule.depth, tree.siblings - 1
        return self._numbers(depth * others, plan.counts > 0).view(-1, depth, others)[:, : tree.depth]

    def _make_step(self, logits: Tensor, plan: StepPlan, where: np.ndarray) -> Step:
        rows = plan.drafts + 1
        step = super()._make_step(logits[:, :rows], plan, where)
        if plan.extra:
            tree, candidates = self.schedule.tree(plan.drafts), self._candidates
            real = candidates.exist & step.testable[:, : tree.depth, None]
            laws = torch.cat([step.target_laws, warp(logits[:, rows:], self.sampling)], 1)
            coins = partial(self._sibling_numbers, tree, plan)
            step.branches = Branches(tree, candidates.tokens, real, laws, coins)
        return step

    def _follow(self, step: Step, verdict: Verdict, plan: StepPlan, where: np.ndarray) -> Step:
        branches = step.branches
        if branches is None:
            return step
        depth = branches.tree.depth
        self._put(where[:, :depth], np.ones((len(where), depth), bool), branches.tokens_along(verdict.node))
        # The input of row r lies r - 1 slots behind the first draft's.
        first = self._upload(plan.slots[:, [plan.pending]])
        rows = branches.rows_along(verdict.node)
        self.target.move(first + rows - 1, first + torch.arange(depth, device=self.device))
        return replace(
            step,
            target_laws=branches.laws_along(verdict.node),
            make_noise=lambda: step.noise,
            make_uniforms=lambda: step.uniforms,
            branches=None,
        )
