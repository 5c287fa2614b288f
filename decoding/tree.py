"""Trees of drafts: their shape, and the schedule that feeds one at the head of the window (SJD-PAC, arXiv
2603.18599)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from .device import upload
from .errors import DecodingError
from .grid import TokenGrid
from .lanes import Lanes, Stream
from .schedules import SLOT_MULTIPLE, RasterWindow, StepPlan, round_up

MOST_EXTRA_NODES = 400


@dataclass(frozen=True)
class Tree:
    """`siblings` (K) candidates for each of the first `depth` columns, the same K under every parent.

    Nodes are numbered as in a heap: the root, the last fixed token, is 0, the children of node i are K i + 1
    to K i + K. First children all the way are the *chain*, which goes on to the end of the window; the other
    nodes are *extra*. A step's rows are the root, the D drafts of the chain, then the extra nodes in order of
    their numbers; the input of row r is the r-th behind the root.

    Example: K 2, depth 2, D 3. Node 1 and 2 are the candidates of the first column; 3, 4 those of the second
    under node 1, and 5, 6 the same two under node 2. Chain 0, 1, 3; extra 2, 4, 5, 6; rows 4, 5, 6, 7.
    """

    siblings: int
    depth: int
    drafts: int

    @cached_property
    def nodes(self) -> int:
        """The root included."""
        return sum(self.siblings**level for level in range(self.depth + 1))

    @cached_property
    def chain(self) -> np.ndarray:
        """[depth + 1] node of each level, the root first."""
        return np.cumsum([0, *(self.siblings**level for level in range(self.depth))])

    @cached_property
    def level(self) -> np.ndarray:
        """[nodes] level of each node, 0 for the root."""
        return np.searchsorted(self.chain, np.arange(self.nodes), side="right") - 1

    @cached_property
    def extra(self) -> np.ndarray:
        """[E] extra nodes."""
        return np.setdiff1d(np.arange(self.nodes), self.chain)

    @cached_property
    def row(self) -> np.ndarray:
        """[nodes] row of each node in a step."""
        row = np.zeros(self.nodes, np.int64)
        row[self.chain] = np.arange(self.depth + 1)
        row[self.extra] = self.drafts + 1 + np.arange(len(self.extra))
        return row

    @cached_property
    def path(self) -> np.ndarray:
        """[nodes, depth] nodes on the way from the root to each node, and from there on by first children."""
        path = np.zeros((self.nodes, self.depth), np.int64)
        for node in range(self.nodes):
            way = [node]
            while way[0] > 0:
                way.insert(0, (way[0] - 1) // self.siblings)
            while len(way) <= self.depth:
                way.append(self.siblings * way[-1] + 1)
            path[node] = way[1:]
        return path

    @cached_property
    def choice(self) -> np.ndarray:
        """[nodes] which candidate of its column each node is."""
        return (np.arange(self.nodes) - 1) % self.siblings

    @cached_property
    def seen(self) -> np.ndarray:
        """[E, depth] inputs, counted behind the root, that each extra node sees of the window: its ancestors
        and itself."""
        level = np.minimum(np.arange(self.depth), self.level[self.extra][:, None] - 1)
        return self.row[np.take_along_axis(self.path[self.extra], level, 1)] - 1


@lru_cache(maxsize=64)
def tree_of(siblings: int, depth: int, drafts: int) -> Tree:
    """The tree over a chain of `drafts`; no deeper than the chain is long."""
    return Tree(siblings, min(depth, drafts), drafts)


@dataclass(frozen=True)
class TreeWindow(RasterWindow):
    """A raster window whose first `depth` columns have `siblings` candidates each.

    The chain is fed as ever. The extra nodes follow it in the slots right behind the window: none of those
    holds anything yet that a query may see, and a later feed overwrites them. Shapes are never fixed: the
    nodes of the winning branch were computed at other places of the forward than the chain's.
    """

    siblings: int = 3
    depth: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.siblings <= 16:
            raise DecodingError(f"a tree needs 2 to 16 siblings a column, got {self.siblings}")
        if not 1 <= self.depth <= 8:
            raise DecodingError(f"the depth of a tree must lie in 1 to 8 columns, got {self.depth}")
        if self.extra_nodes > MOST_EXTRA_NODES:
            raise DecodingError(
                f"{self.siblings} siblings, {self.depth} deep, are {self.extra_nodes} extra drafts a pass; "
                f"at most {MOST_EXTRA_NODES}: choose fewer siblings or a lower depth"
            )
        if self.window < 1 or self.pads_only or self.fixed_shapes:
            raise DecodingError("a tree needs a window of drafts, and its forwards have no fixed shape")

    @property
    def extra_nodes(self) -> int:
        """Inputs of a step beyond the chain, at most."""
        return sum(self.siblings**level - 1 for level in range(1, self.depth + 1))

    def tree(self, drafts: int) -> Tree:
        return tree_of(self.siblings, self.depth, drafts)

    def facts(self) -> list[str]:
        return [*super().facts(), f"tree of {self.siblings} siblings, {self.depth} deep"]

    def cache_slots(self, stream: Stream) -> int:
        return round_up(super().cache_slots(stream) + self.extra_nodes, SLOT_MULTIPLE)

    def most_laws(self, grid: TokenGrid) -> int:
        return super().most_laws(grid) + self.extra_nodes

    def plan(self, lanes: Lanes, stream: Stream, cache_slots: int) -> StepPlan:
        chain = super().plan(lanes, stream, cache_slots)
        tree = self.tree(chain.drafts)
        extra = len(tree.extra)
        positions = chain.slots[:, [-1]] - chain.drafts + tree.level[tree.extra]
        slots = np.hstack([chain.slots, chain.slots[:, [-1]] + 1 + np.arange(extra)])
        used = min(round_up(int(slots.max()) + 1, SLOT_MULTIPLE), cache_slots)
        return replace(
            chain,
            sources=np.hstack([chain.sources, positions]),
            positions=np.hstack([chain.positions, np.minimum(positions, stream.grid.length - 1)]),
            slots=slots,
            extent=used,
            extra=extra,
        )

    def visible(self, plan: StepPlan, lanes: Lanes, slots: Tensor) -> Tensor:
        """Causal along the chain; an extra node sees what the root sees, its ancestors and itself."""
        chain = super().visible(plan, lanes, slots[:, : slots.shape[1] - plan.extra])
        if not plan.extra:
            return chain
        seen = upload(plan.pending + self.tree(plan.drafts).seen, slots.device)
        slot = torch.arange(plan.extent, device=slots.device)
        branch = chain[:, plan.pending - 1, None].repeat(1, plan.extra, 1)
        for level in range(seen.shape[1]):
            branch |= slot == slots[:, seen[:, level], None]
        return torch.cat([chain, branch], 1)
