"""Limits in which one decoder becomes another: the same numbers in, the same tokens out.

The limits of the rows (a threshold of a whole row) are in test_rows.py.
"""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    SamplingSettings,
    TokenGrid,
    Trace,
    decode,
    run_to_end,
    sjd,
    with_prediction,
)
from jacobi_ar.decoding.drafts import Drafts
from jacobi_ar.decoding.semantics import SemanticsVerification
from jacobi_ar.decoding.step import Step, Uniforms
from jacobi_ar.decoding.verifiers import TokenTest
from torch import Tensor

from .toy import ToyTarget

LANES, DRAFTS, VOCABULARY = 400, 6, 5


def random_step(order: str) -> Step:
    """Random laws and drafts; the target probabilities of a lane's drafts fall, rise, or neither."""
    generator = torch.Generator().manual_seed(3)

    def laws(rows: int) -> Tensor:
        return torch.rand(LANES, rows, VOCABULARY, generator=generator).softmax(-1)

    target, declared = laws(DRAFTS + 1), laws(DRAFTS)
    tokens = torch.randint(VOCABULARY, (LANES, DRAFTS), generator=generator)
    probability = target[:, :-1].gather(-1, tokens[..., None]).squeeze(-1)
    if order != "any":
        rank = probability.argsort(-1, descending=order == "falling")
        lane = torch.arange(LANES)[:, None]
        target[:, :-1], tokens = target[lane, rank], tokens[lane, rank]
    coins = torch.rand(LANES, DRAFTS, generator=generator)
    uniforms = Uniforms(coins, torch.zeros(LANES, DRAFTS + 1), torch.rand(LANES, generator=generator))
    testable = torch.ones(LANES, DRAFTS, dtype=torch.bool)
    return Step(
        Drafts(tokens, declared), target, testable, ~testable, lambda: torch.empty(0), lambda: uniforms
    )


@pytest.mark.parametrize("proportion", [0.5, 0.8, 1.0])
def test_semantics_over_runs_of_one_token_is_the_plain_test(proportion: float) -> None:
    """Where the target probabilities of the drafts fall throughout, each run is one token, its own suffix."""
    step = random_step("falling")
    plain, semantic = TokenTest().verify(step), SemanticsVerification(proportion=proportion).verify(step)
    assert torch.equal(semantic.accepted, plain.accepted)
    assert torch.equal(semantic.emitted, plain.emitted)
    assert set(plain.accepted.tolist()) == set(range(DRAFTS + 1))  # all lengths occur


@pytest.mark.parametrize("order", ["rising", "any"])
def test_semantics_over_longer_runs_is_not(order: str) -> None:
    step = random_step(order)
    plain, semantic = TokenTest().verify(step), SemanticsVerification().verify(step)
    assert semantic.accepted.sum() > plain.accepted.sum()


def decoded(decoder: Decoder) -> tuple[Tensor, Trace]:
    target = ToyTarget(TokenGrid(2, 3), vocabulary=4)
    result = run_to_end(decode(target, [None] * 300, decoder, SamplingSettings(), list(range(300))))
    return result.tokens, result.trace


@pytest.mark.parametrize("draw", ["fresh", "maximal coupling", "shared noise"])
def test_prediction_without_enough_history_is_the_plain_decoder(draw: str) -> None:
    """Six cells are over before any of them has had eight laws."""
    plain, plain_trace = decoded(sjd(window=5, draw=draw))
    predicted, trace = decoded(with_prediction(sjd(window=5, draw=draw), growth=8))
    assert torch.equal(predicted, plain) and trace.accepted == plain_trace.accepted
    leaning, _ = decoded(with_prediction(sjd(window=5, draw=draw), growth=1))
    assert not torch.equal(leaning, plain)
