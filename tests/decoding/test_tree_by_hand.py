"""Trees of drafts worked out by hand: shape, siblings, recursive rejection, in literal numbers."""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.decoding import DecodingError, Promise, same_picture_tree, sjd_tree, with_semantics
from jacobi_ar.decoding.branches import Branches, runners_up, without_replacement
from jacobi_ar.decoding.drafts import Drafts
from jacobi_ar.decoding.step import Step, Uniforms
from jacobi_ar.decoding.tree import Tree, TreeWindow
from jacobi_ar.decoding.tree_verifiers import TreeTest


def test_shape_of_a_small_tree() -> None:
    tree = Tree(2, 2, 3)
    assert tree.nodes == 7 and tree.chain.tolist() == [0, 1, 3] and tree.extra.tolist() == [2, 4, 5, 6]
    assert tree.level.tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert tree.row.tolist() == [0, 1, 4, 2, 5, 6, 7]
    assert tree.path.tolist() == [[1, 3], [1, 3], [2, 5], [1, 3], [1, 4], [2, 5], [2, 6]]
    assert tree.choice[1:].tolist() == [0, 1, 0, 1, 0, 1]
    # Inputs behind the root: 0 1 2 the chain's, 3 node 2, 4 node 4, 5 node 5, 6 node 6.
    assert tree.seen.tolist() == [[3, 3], [0, 4], [3, 5], [3, 6]]


TARGET, DRAFT = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.1, 0.6]
SURE = [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]  # laws below the three siblings


def step_with_siblings(tokens: list[int], coins: list[float], emission: float = 0.5) -> Step:
    """One lane, one draft, two siblings beside it."""
    laws = torch.tensor([[TARGET, *SURE]])
    uniforms = Uniforms(torch.tensor([coins[:1]]), torch.zeros(1, 2), torch.tensor([emission]))
    real = torch.ones(1, 1, 3, dtype=torch.bool)
    branches = Branches(
        Tree(3, 1, 1), torch.tensor([[tokens]]), real, laws, lambda: torch.tensor([[coins[1:]]])
    )
    drafts = Drafts(torch.tensor([tokens[:1]]), torch.tensor([[DRAFT]]))
    is_draft = torch.ones(1, 1, dtype=torch.bool)
    arguments = (drafts, laws[:, :2], is_draft, ~is_draft, lambda: torch.empty(0), lambda: uniforms)
    return Step(*arguments, branches=branches)


@pytest.mark.parametrize(
    ("tokens", "coins", "accepted", "emitted", "node"),
    [
        # Token 3: 0.1 / 0.6. Kept below that; the bonus follows it from its own law.
        ([3, 1, 2], [0.16, 0.9, 0.9], 1, 1, 1),
        # Rejected: t = (0.3, 0.1, 0.1, 0) / 0.5 = (0.6, 0.2, 0.2, 0), p = (0.25, 0.5, 0.25, 0).
        # Token 1: 0.2 / 0.5 = 0.4.
        ([3, 1, 2], [0.17, 0.39, 0.9], 1, 2, 2),
        # Rejected: t = (0.35, 0, 0, 0) / 0.35, p = (0.5, 0, 0.5, 0). Token 2 cannot pass, token 0 must.
        ([3, 1, 2], [0.17, 0.41, 0.0], 0, 0, 0),
        ([3, 1, 0], [0.17, 0.41, 0.99], 1, 3, 3),
        # Token 0 next: 0.6 / 0.25, kept for sure.
        ([3, 0, 2], [0.17, 0.99, 0.0], 1, 2, 2),
    ],
)
def test_recursive_rejection(
    tokens: list[int], coins: list[float], accepted: int, emitted: int, node: int
) -> None:
    verdict = TreeTest().verify(step_with_siblings(tokens, coins))
    assert [int(part) for part in verdict] == [accepted, emitted, node]


def test_what_is_left_after_one_sibling_is_drawn_from() -> None:
    """Token 3 rejected and no sibling: t = (0.6, 0.2, 0.2, 0), cumulated 0.6, 0.8, 1."""
    for emission, token in ((0.59, 0), (0.61, 1), (0.81, 2)):
        step = step_with_siblings([3, 1, 2], [0.17, 0.0, 0.0], emission)
        step.branches.real[..., 1:] = False
        assert [int(part) for part in TreeTest().verify(step)] == [0, token, 0]


@pytest.mark.parametrize(
    ("coin", "emission", "emitted"),
    [
        # Below node 2 the law is (0.2, 0.2, 0.5, 0.1). The next draft is token 1, drawn from (0.1, 0.5, 0.2,
        # 0.2): 0.4. Rejected, max(q - p, 0) = (0.1, 0, 0.3, 0).
        (0.39, 0.99, 1),
        (0.41, 0.24, 0),
        (0.41, 0.26, 2),
    ],
)
def test_the_draft_behind_a_winning_branch_is_tested_once_more(
    coin: float, emission: float, emitted: int
) -> None:
    below = [0.2, 0.2, 0.5, 0.1]
    laws = torch.tensor([[TARGET, SURE[0], SURE[0], below, SURE[2]]])  # root, chain, chain, nodes 2 and 3
    uniforms = Uniforms(torch.tensor([[0.17, coin]]), torch.zeros(1, 3), torch.tensor([emission]))
    tokens, real = torch.tensor([[[3, 1, 2]]]), torch.ones(1, 1, 3, dtype=torch.bool)
    branches = Branches(Tree(3, 1, 2), tokens, real, laws, lambda: torch.tensor([[[0.39, 0.9]]]))
    drafts = Drafts(torch.tensor([[3, 1]]), torch.tensor([[DRAFT, [0.1, 0.5, 0.2, 0.2]]]))
    is_draft = torch.ones(1, 2, dtype=torch.bool)
    arguments = (drafts, laws[:, :3], is_draft, ~is_draft, lambda: torch.empty(0), lambda: uniforms)
    verdict = TreeTest().verify(Step(*arguments, branches=branches))
    assert [int(part) for part in verdict] == [1, emitted, 2]


def test_siblings_come_without_replacement_and_end_with_the_support() -> None:
    law = torch.tensor([[[0.1, 0.0, 0.3, 0.6], [0.0, 1.0, 0.0, 0.0]]])
    drafts = Drafts(torch.tensor([[3, 1]]), law)
    drawn = without_replacement(drafts, torch.tensor([[[0.24, 0.0, 0.5], [0.5, 0.5, 0.5]]]))
    # Without 3: (0.1, 0, 0.3): below a quarter token 0, then 2, then nothing is left.
    assert drawn.tokens[0, 0, :3].tolist() == [3, 0, 2]
    assert drawn.exist.tolist() == [[[True, True, True, False], [True, False, False, False]]]
    # Race at noise 1, 1, 2, 1: 0.1, 0, 0.15, 0.6.
    raced = runners_up(drafts, torch.tensor([1.0, 1.0, 2.0, 1.0]).expand(1, 2, 4), 6)
    assert raced.tokens[0, 0, :3].tolist() == [3, 2, 0]
    assert raced.exist.tolist() == [[[True] * 3 + [False] * 3, [True] + [False] * 5]]


def test_trees_out_of_range_are_refused() -> None:
    for siblings, depth, message in ((1, 2, "2 to 16"), (3, 0, "depth"), (8, 3, "extra drafts")):
        with pytest.raises(DecodingError, match=message):
            sjd_tree(15, siblings, depth)
    with pytest.raises(DecodingError, match="no fixed shape"):
        TreeWindow(15, fixed_shapes=True)
    with pytest.raises(DecodingError, match="semantics"):
        with_semantics(sjd_tree())
    assert sjd_tree().promise is Promise.SAME_DISTRIBUTION
    assert same_picture_tree().promise is Promise.SAME_PICTURE
    assert "tree of 3 siblings, 2 deep" in sjd_tree().describe()
