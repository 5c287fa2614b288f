"""Small cases worked out by hand, in literal numbers: what each paper's rule does with them."""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.decoding import DecodingError
from jacobi_ar.decoding.block import BlockTest
from jacobi_ar.decoding.codebook import Codebook
from jacobi_ar.decoding.drafts import Drafts, History
from jacobi_ar.decoding.prediction import VerificationPrediction
from jacobi_ar.decoding.ratios import GroupedRatio, NeighbourhoodRatio
from jacobi_ar.decoding.semantics import Runs, SemanticsVerification
from jacobi_ar.decoding.step import Step, Uniforms
from jacobi_ar.decoding.verifiers import TokenTest
from torch import Tensor


def step_of(
    target: list[list[float]],  # D + 1 laws
    draft: list[list[float]],  # D laws
    tokens: list[int],
    coins: list[float],
    emission: float = 0.0,
    known: list[int] | None = None,
    codebook: Tensor | None = None,
) -> Step:
    """One lane."""
    count = len(tokens)
    is_known = torch.zeros(1, count, dtype=torch.bool)
    is_known[0, known or []] = True
    laws = torch.tensor([draft]).view(1, count, -1)
    uniforms = Uniforms(torch.tensor([coins]), torch.zeros(1, count + 1), torch.tensor([emission]))
    return Step(
        Drafts(torch.tensor([tokens]), laws),
        torch.tensor([target]),
        ~is_known,
        is_known,
        lambda: torch.empty(0),
        lambda: uniforms,
        None if codebook is None else Codebook(codebook),
    )


def binary(*probabilities: float) -> list[list[float]]:
    """Laws over two tokens, given the probability of token 0."""
    return [[p, round(1 - p, 6)] for p in probabilities]


# --- Token test
# -----------------------------------------------------------------------------------------------------


def test_token_test_stops_at_the_first_rejection_and_draws_from_the_residual() -> None:
    """q/p of token 0: 1.5, 0.5, 2. Coins 0.9 < 1.5 keeps, 0.6 >= 0.5 rejects; max(q - p, 0) = (0, 0.4): token
    1."""
    step = step_of(binary(0.6, 0.4, 0.8, 0.5), binary(0.4, 0.8, 0.4), [0, 0, 0], [0.9, 0.6, 0.0])
    verdict = TokenTest().verify(step)
    assert (verdict.accepted.tolist(), verdict.emitted.tolist()) == ([1], [1])


def test_token_test_passes_across_known_tokens() -> None:
    step = step_of(
        binary(0.6, 0.0, 0.8, 0.3), binary(0.4, 1.0, 0.4), [0, 0, 0], [0.9, 0.99, 0.9], 0.5, known=[1]
    )
    verdict = TokenTest().verify(step)
    assert (verdict.accepted.tolist(), verdict.emitted.tolist()) == ([3], [1])  # bonus: 0.5 is past 0.3


# --- Semantics verification
# -----------------------------------------------------------------------------------------

RISING = [0.2, 0.3, 0.5, 0.4, 0.4, 0.1]  # runs: 0.2 0.3 0.5 | 0.4 0.4 | 0.1


@pytest.mark.parametrize(
    ("proportion", "suffix"),
    [
        # Run 1 sums to 1.0: its suffixes from the right hold 0.5, 0.8, 1.0. Run 2: 0.4, 0.8 of 0.8. Run 3:
        # 0.1.
        (0.49, [2, 2, 2, 4, 4, 5]),
        (0.8, [1, 1, 1, 3, 3, 5]),
        (0.9, [0, 0, 0, 3, 3, 5]),
        (1.0, [0, 0, 0, 3, 3, 5]),
    ],
)
def test_semantics_partition_and_suffix(proportion: float, suffix: list[int]) -> None:
    step = step_of(binary(*RISING, 0.5), binary(*[0.5] * 6), [0] * 6, [0.0] * 6)
    runs = Runs(step, torch.tensor([RISING]), proportion)
    assert runs.begin.tolist() == [[0, 0, 0, 3, 3, 5]]
    assert runs.end.tolist() == [[2, 2, 2, 4, 4, 5]]
    assert runs.suffix.tolist() == [suffix]


def test_semantics_runs_end_at_known_tokens() -> None:
    step = step_of(binary(0.1, 0.2, 0.3, 0.4, 0.5), binary(*[0.5] * 4), [0] * 4, [0.0] * 4, known=[2])
    assert Runs(step, torch.tensor([[0.1, 0.2, 0.3, 0.4]]), 0.8).begin.tolist() == [[0, 0, 2, 3]]


@pytest.mark.parametrize(
    ("number", "accepted"),
    [
        # One run 0.2 0.3 0.5, suffix from index 1 on (0.8 of its mass). Ratios there: 0.3/0.6 = 0.5, 0.5/1 =
        # 0.5; products 0.5 up to index 1, 0.25 up to index 2.
        (0.2, 3),  # 0.2 <= 0.25: the whole run
        (0.3, 2),  # falls back to index 1: 0.3 <= 0.5
        (0.6, 1),  # not even index 1: what lies before the suffix is accepted untested
    ],
)
def test_semantics_fallback_shortens_the_suffix(number: float, accepted: int) -> None:
    step = step_of(binary(0.2, 0.3, 0.5, 0.9), binary(0.9, 0.6, 1.0), [0, 0, 0], [number, 0.99, 0.99])
    assert SemanticsVerification().verify(step).accepted.tolist() == [accepted]


def test_semantics_options() -> None:
    step = step_of(binary(0.2, 0.3, 0.5, 0.9), binary(0.9, 0.6, 1.0), [0, 0, 0], [0.6, 0.6, 0.2])
    assert SemanticsVerification().verify(step).accepted.tolist() == [1]
    assert SemanticsVerification(reject_from_start=True).verify(step).accepted.tolist() == [0]
    # A number for each shortening: 0.2 <= 0.25 at index 2.
    assert SemanticsVerification(one_number=False).verify(step).accepted.tolist() == [3]


def test_semantics_stops_at_the_first_run_that_falls() -> None:
    """Runs (0.5) (0.4) (0.3), one token each: the plain token test, with r <= ratio."""
    laws, drafts = binary(0.5, 0.4, 0.3, 0.5), binary(0.5, 0.8, 0.3)
    for coins, accepted in (([0.9, 0.6, 0.1], 1), ([0.9, 0.49, 0.1], 3)):
        assert SemanticsVerification().verify(step_of(laws, drafts, [0] * 3, coins)).accepted.tolist() == [
            accepted
        ]


def test_a_draft_that_the_target_excludes_is_tested_like_any_other() -> None:
    """Alone in its run it falls. Before its run's suffix it is accepted untested, as the paper has it."""
    alone = step_of(binary(0.5, 0.0, 0.5), binary(0.5, 0.5), [0, 0], [0.5, 0.1])
    assert SemanticsVerification().verify(alone).accepted.tolist() == [1]
    led = step_of(binary(0.5, 0.0, 0.3, 0.5), binary(0.5, 0.5, 0.3), [0, 0, 0], [0.5, 0.1, 0.5])
    assert SemanticsVerification().verify(led).accepted.tolist() == [3]


# --- Block verification
# ---------------------------------------------------------------------------------------------


def test_block_survival() -> None:
    """Ratios 0.5, 3, 0.5: b = 1, 0.5, min(1, 1.5) = 1, 0.5."""
    step = step_of(binary(0.4, 0.6, 0.4, 0.5), binary(0.8, 0.2, 0.8), [0, 0, 0], [0.0] * 3)
    torch.testing.assert_close(BlockTest.survival(step), torch.tensor([[1.0, 0.5, 1.0, 0.5]]))


@pytest.mark.parametrize(
    ("coins", "accepted"),
    [
        # b as above. Excess R_1 = max(0.5 * 0.6 - 0.2, 0) + max(0.5 * 0.4 - 0.8, 0) = 0.1; h_1 = 0.1 / 0.6.
        # R_2: max(0.4 - 0.8, 0) + max(0.6 - 0.2, 0) = 0.4, b_2 = 1: h_2 = 1. h_3 = b_3 = 0.5.
        ([0.99, 0.99, 0.49], 3),
        ([0.99, 0.99, 0.51], 2),
        ([0.10, 0.99, 0.51], 2),
    ],
)
def test_block_acceptance(coins: list[float], accepted: int) -> None:
    step = step_of(binary(0.4, 0.6, 0.4, 0.5), binary(0.8, 0.2, 0.8), [0, 0, 0], coins)
    assert BlockTest().verify(step).accepted.tolist() == [accepted]


@pytest.mark.parametrize(("coin", "accepted"), [(0.16, 1), (0.17, 0)])
def test_block_acceptance_at_the_first_draft(coin: float, accepted: int) -> None:
    """Two drafts with ratios 0.5 and 0 (the second excluded): h_1 = 0.1 / 0.6, h_2 = b_2 = 0."""
    step = step_of(binary(0.4, 0.6, 0.5), binary(0.8, 0.2), [0, 1], [coin, 0.0])
    step.target_laws[0, 1] = torch.tensor([0.6, 0.4])
    step.target_laws[0, 1, 1] = 0.0
    verdict = BlockTest().verify(step)
    assert verdict.accepted.tolist() == [accepted]


# --- Verification prediction
# ----------------------------------------------------------------------------------------


def prediction_laws(now: list[float], past: list[list[float]], age: int, **settings: float) -> list[float]:
    """Redraft law of one draft with the given earlier laws, newest first."""
    step = step_of([now, now], [now], [0], [0.0])
    history = History(torch.tensor([[past]]), torch.tensor([[age]]))
    step.drafts = Drafts(step.drafts.tokens, step.drafts.laws, history)
    growth = len(past)
    laws, remembered = VerificationPrediction(growth=growth, **settings).laws(step)  # type: ignore[arg-type]
    torch.testing.assert_close(remembered.laws[0, 0], torch.tensor([now, *past[:-1]]))
    assert remembered.age.tolist() == [[min(age + 1, growth), 1]]
    return laws[0, 0].tolist()


def test_prediction_leans_to_what_keeps_growing() -> None:
    """Token 0 grew 0.1, 0.2, 0.3, 0.4; token 1 fell; token 2 stood still.

    Weights 4/7, 2/7, 1/7: reference of token 0 is (4 * 0.3 + 2 * 0.2 + 0.1) / 7 = 1.7 / 7, gain 0.4 * 7 / 1.7
    = 1.647.
    """
    now, past = [0.4, 0.4, 0.2], [[0.3, 0.5, 0.2], [0.2, 0.6, 0.2], [0.1, 0.7, 0.2]]
    gain = 0.4 / (1.7 / 7)
    total = 0.4 * gain + 0.6
    assert prediction_laws(now, past, age=3) == pytest.approx(
        [0.4 * gain / total, 0.4 / total, 0.2 / total], rel=1e-5
    )
    assert prediction_laws(now, past, age=2) == pytest.approx(now)  # too little history: the target law
    even = 0.4 / 0.2
    total = 0.4 * even + 0.6
    assert prediction_laws(now, past, age=3, decay=1.0)[0] == pytest.approx(0.4 * even / total, rel=1e-5)


def test_prediction_gain_is_capped_and_needs_a_positive_past() -> None:
    past = [[0.02, 0.98], [0.01, 0.99]]
    assert prediction_laws([0.5, 0.5], past, age=2, cap=3.0)[0] == pytest.approx(1.5 / 2.0)
    assert prediction_laws([0.5, 0.5], [[0.02, 0.98], [0.0, 1.0]], age=2) == pytest.approx([0.5, 0.5])


def test_prediction_needs_growth_at_every_step() -> None:
    past = [[0.3, 0.7], [0.3, 0.7]]  # no growth between the two
    assert prediction_laws([0.4, 0.6], past, age=2) == pytest.approx([0.4, 0.6])


# --- GSD and LANTERN
# ------------------------------------------------------------------------------------------------

Q = [0.30, 0.22, 0.20, 0.18, 0.06, 0.04]
P = [0.10, 0.20, 0.40, 0.10, 0.10, 0.10]
FAR = torch.tensor([[0.0], [0.1], [0.2], [9.0], [0.3], [0.4]])  # token 3 looks like nothing else


def terms(ratio: GroupedRatio | NeighbourhoodRatio, codebook: Tensor = FAR) -> tuple[float, float]:
    numerator, denominator = ratio.terms(step_of([Q, Q], [P], [2], [0.0], codebook=codebook))
    return float(numerator), float(denominator)


def test_grouped_clusters() -> None:
    """Draft 2 has rank 3. Group 2: ranks [2, 3]; group 4: [1, 4], token 3 out for its looks; then the gap
    cuts token 0."""
    assert terms(GroupedRatio(2, 1.0, 1.0)) == pytest.approx((0.22 + 0.20, 0.20 + 0.40))
    assert terms(GroupedRatio(4, 1.0, 1.0)) == pytest.approx((0.30 + 0.22 + 0.20, 0.10 + 0.20 + 0.40))
    assert terms(GroupedRatio(4, 0.05, 1.0)) == pytest.approx((0.22 + 0.20, 0.20 + 0.40))
    assert terms(GroupedRatio(4, 1.0, 1000.0)) == pytest.approx((0.90, 0.80))
    assert terms(GroupedRatio(4, 1.0, 0.001)) == pytest.approx((0.20, 0.40))  # alone: the plain ratio


def test_lantern_neighbourhoods() -> None:
    """Nearest to token 2 (0.2): tokens 1 and 4 at 0.1, 0 and 5 at 0.2, 3 far. Here with tokens 1, 4 told
    apart."""
    codebook = torch.tensor([[0.0], [0.11], [0.2], [9.0], [0.3], [0.41]])  # order from 2: 1, 4, 0, 5, 3
    assert Codebook(codebook).nearest(9)[2].tolist() == [1, 4, 0, 5, 3]
    assert terms(NeighbourhoodRatio(5, 0.25), codebook) == pytest.approx((0.20 + 0.22, 0.40))
    assert terms(NeighbourhoodRatio(5, 0.29), codebook) == pytest.approx((0.20 + 0.22 + 0.06, 0.40))
    assert terms(NeighbourhoodRatio(1, 0.9), codebook) == pytest.approx((0.20 + 0.22, 0.40))
    assert terms(NeighbourhoodRatio(5, 0.10), codebook) == pytest.approx(
        (0.20, 0.40)
    )  # the nearest is too heavy
    assert terms(NeighbourhoodRatio(5, 2.2), codebook) == pytest.approx(
        (0.20 + 0.22, 0.40)
    )  # 1.2 * 0.20 = 0.24


def test_lantern_takes_the_neighbourhood_out_after_a_rejection() -> None:
    codebook = torch.tensor([[0.0], [0.11], [0.2], [9.0], [0.3], [0.41]])
    step = step_of([Q, Q], [P], [2], [0.0], codebook=codebook)
    q, p, draft = torch.tensor([Q]), torch.tensor([P]), torch.tensor([2])
    law = NeighbourhoodRatio(2, 0.25).after_rejection(
        step, q, p, draft
    )  # A is token 1 alone: out are 2 and 1
    torch.testing.assert_close(law, torch.tensor([[0.20, 0.0, 0.0, 0.08, 0.0, 0.0]]))
    law = NeighbourhoodRatio(5, 0.7).after_rejection(
        step, q, p, draft
    )  # A: 1, 4, 0, 5; all that is left is 3
    torch.testing.assert_close(law, torch.tensor([[0.0, 0.0, 0.0, 0.08, 0.0, 0.0]]))
    plain = NeighbourhoodRatio(2, 0.1).after_rejection(step, q, p, draft)  # the neighbourhood was empty
    torch.testing.assert_close(plain, torch.tensor([[0.20, 0.02, 0.0, 0.08, 0.0, 0.0]]))


def test_a_missing_codebook_is_said() -> None:
    with pytest.raises(DecodingError, match="needs the image tokenizer"):
        GroupedRatio().terms(step_of([Q, Q], [P], [2], [0.0]))


def test_the_closed_form_of_block_survival_is_the_recursion() -> None:
    generator = torch.Generator().manual_seed(0)
    q, p = (torch.rand(50, 12, 2, generator=generator).softmax(-1) for _ in range(2))
    for i in range(50):
        laws = torch.cat([q[i], q[i, :1]]).tolist()
        step = step_of(laws, p[i].tolist(), [0] * 12, [0.0] * 12)
        b, expected = 1.0, [1.0]
        for j in range(12):
            b = min(1.0, b * float(q[i, j, 0] / p[i, j, 0]))
            expected.append(b)
        assert BlockTest.survival(step)[0].tolist() == pytest.approx(expected, rel=1e-5)
