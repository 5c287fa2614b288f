"""Compare Decoders without ComfyUI: who runs, what the figures are, and which finished runs are taken
again."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    Promise,
    SamplingSettings,
    TokenGrid,
    Trace,
    autoregressive,
    greedy_jacobi,
    same_picture,
    sjd,
)
from jacobi_ar.model_loaders.image_transformer import Prompt
from jacobi_ar.nodes.comparison import Entry, Stopwatch, entries_of, figures_of, table
from jacobi_ar.nodes.finished_runs import FinishedRun, FinishedRuns, key_of
from jacobi_ar.nodes.run_settings import RunSettings

SETTINGS = RunSettings(TokenGrid(2, 2), 2.0, SamplingSettings(1.0, 0, 1.0), (7,))
AR = autoregressive()


def finished(decoder: Decoder, seconds: float, passes: int, tokens: list[int]) -> FinishedRun:
    steps = np.linspace(1, passes, 4).round().astype(np.int64).reshape(1, 2, 2)
    trace = Trace(decoder.describe(), decoder.promise, [7], steps, [[1]] * passes)
    return FinishedRun(torch.tensor(tokens).view(1, 2, 2), trace, seconds)


def names(decoders: list[Decoder], reference: bool = True) -> list[str]:
    return [entry.decoder.describe() for entry in entries_of(decoders, SETTINGS, reference)]


def test_the_reference_comes_first_unless_it_is_wired_or_not_wanted() -> None:
    assert names([sjd(3)]) == [AR.describe(), sjd(3).describe()]
    assert names([sjd(3), AR]) == [sjd(3).describe(), AR.describe()]
    assert names([sjd(3)], reference=False) == [sjd(3).describe()]


def test_padded_step_by_step_decoding_is_no_reference() -> None:
    """Its passes are as dear as a decoder's: speed-ups over it would flatter."""
    padded = autoregressive(padded_window=3)
    assert names([padded]) == [AR.describe(), padded.describe()]


def test_the_figures_are_those_of_the_runs() -> None:
    entries = entries_of([same_picture(3), sjd(3), greedy_jacobi(3)], SETTINGS, True)
    runs = [
        finished(AR, 2.0, 4, [5, 6, 7, 8]),
        finished(same_picture(3), 0.5, 2, [5, 6, 7, 9]),
        finished(sjd(3), 4.0, 3, [5, 6, 7, 8]),
        finished(greedy_jacobi(3), 1.0, 2, [5, 6, 7, 8]),
    ]
    found = figures_of(entries, runs)
    assert [figures.speed_up for figures in found] == [1.0, 4.0, 0.5, 2.0]
    # Another promise, or temperature 0 against the reference's 1: equality would mean nothing.
    assert [figures.equal for figures in found] == [4, 3, None, None]
    assert [figures.passes for figures in found] == [4, 2, 3, 2]
    lines = table(entries, found, ["a note"]).splitlines()
    assert lines[3] == f"| {same_picture(3).describe()} | same picture | 0.50 | 2 | 2.0 | 4.0x | 3 of 4 |"
    assert lines[4].endswith("| 4.00 | 3 | 1.3 | 0.5x | – |") and lines[-1] == "a note"
    assert lines[2].split(" | ")[1] == "reference"


def test_without_a_reference_there_is_no_speed_up() -> None:
    entries = entries_of([same_picture(3)], SETTINGS, False)
    (figures,) = figures_of(entries, [finished(same_picture(3), 0.5, 2, [1, 2, 3, 4])])
    assert figures.speed_up is None and figures.equal is None
    assert figures.row()[-2:] == ["–", "–"]


def test_figures_come_one_by_one_as_runs_finish() -> None:
    entries = entries_of([same_picture(3)], SETTINGS, True)
    found = figures_of(entries, [finished(AR, 2.0, 4, [1, 2, 3, 4]), None])
    assert found[0].speed_up == 1.0 and found[1] is None


def test_greedy_decoding_runs_at_temperature_zero_and_the_others_do_not() -> None:
    entries = entries_of([greedy_jacobi(3), sjd(3)], SETTINGS, True)
    assert [entry.settings.sampling.temperature for entry in entries] == [1.0, 0.0, 1.0]


def test_a_pipe_does_not_break_the_table() -> None:
    odd = replace(sjd(3), name="a|b")
    (line,) = table(
        [Entry(odd, SETTINGS)], figures_of([Entry(odd, SETTINGS)], [finished(odd, 1, 2, [0] * 4)])
    ).splitlines()[2:]
    assert line.replace("\\|", "").count("|") == 8


def test_the_stopwatch_leaves_out_what_is_done_in_between() -> None:
    now = [0.0]

    def work() -> object:
        for _ in range(3):
            now[0] += 2.0
            yield object()
        now[0] += 1.0

    watch = Stopwatch(clock=lambda: now[0])
    for _ in watch.over(work()):
        now[0] += 50.0  # a preview
    assert watch.seconds == 7.0


class Value:
    """As much of a ModelValue as the key looks at."""

    def __init__(self, loaded: object, tokenizer: object) -> None:
        self.loaded, self.tokenizer = loaded, tokenizer


class Thing:
    pass


LOADED, TOKENIZER = Thing(), Thing()
MODEL = Value(LOADED, TOKENIZER)
PROMPT = Prompt("f", "fox", {"ids": torch.tensor([1, 2])})


def test_the_same_inputs_find_the_finished_run() -> None:
    runs, run = FinishedRuns(), finished(sjd(3), 1.0, 2, [1, 2, 3, 4])
    runs.keep(key_of(MODEL, PROMPT, sjd(3), SETTINGS), run)
    again = Prompt("f", "fox", {"ids": torch.tensor([1, 2])})
    assert runs.get(key_of(Value(LOADED, TOKENIZER), again, sjd(3), replace(SETTINGS))) is run


@pytest.mark.parametrize(
    "other",
    [
        (Value(Thing(), TOKENIZER), PROMPT, sjd(3), SETTINGS),
        (Value(LOADED, Thing()), PROMPT, sjd(3), SETTINGS),
        (MODEL, replace(PROMPT, text="wolf"), sjd(3), SETTINGS),
        (MODEL, replace(PROMPT, tensors={"ids": torch.tensor([1, 3])}), sjd(3), SETTINGS),
        (MODEL, PROMPT, sjd(4), SETTINGS),
        (MODEL, PROMPT, sjd(3, draw="shared noise"), SETTINGS),
        (MODEL, PROMPT, same_picture(3), SETTINGS),
        (MODEL, PROMPT, sjd(3), replace(SETTINGS, seeds=(8,))),
        (MODEL, PROMPT, sjd(3), replace(SETTINGS, guidance=3.0)),
        (MODEL, PROMPT, sjd(3), replace(SETTINGS, grid=TokenGrid(2, 3))),
        (MODEL, PROMPT, sjd(3), replace(SETTINGS, sampling=SamplingSettings(0.9, 0, 1.0))),
    ],
    ids="model tokenizer words prompt window draw decoder seed guidance grid temperature".split(),
)
def test_any_other_input_finds_nothing(other: tuple) -> None:
    runs = FinishedRuns()
    runs.keep(key_of(MODEL, PROMPT, sjd(3), SETTINGS), finished(sjd(3), 1.0, 2, [1, 2, 3, 4]))
    assert runs.get(key_of(*other)) is None


def test_a_model_that_is_gone_is_not_found_again_and_not_kept_alive() -> None:
    runs, loaded = FinishedRuns(), Thing()
    runs.keep(key_of(Value(loaded, TOKENIZER), PROMPT, sjd(3), SETTINGS), finished(sjd(3), 1.0, 2, [0] * 4))
    alive = weakref.ref(loaded)
    del loaded
    gc.collect()
    assert alive() is None
    assert runs.get(key_of(Value(Thing(), TOKENIZER), PROMPT, sjd(3), SETTINGS)) is None


def test_bfloat16_prompts_have_keys_too() -> None:
    half = Prompt("f", "fox", {"states": torch.ones(2, 3, dtype=torch.bfloat16)})
    other = replace(half, tensors={"states": torch.ones(3, 2, dtype=torch.bfloat16)})
    assert key_of(MODEL, half, AR, SETTINGS) != key_of(MODEL, other, AR, SETTINGS)


def test_the_oldest_runs_go_first() -> None:
    runs, run = FinishedRuns(most=2), finished(AR, 1.0, 4, [0] * 4)
    keys = [key_of(MODEL, PROMPT, sjd(window), SETTINGS) for window in (1, 2, 3)]
    runs.keep(keys[0], run)
    runs.keep(keys[1], run)
    assert runs.get(keys[0]) is run  # used again: now the second is the oldest
    runs.keep(keys[2], run)
    assert len(runs) == 2 and runs.get(keys[1]) is None and runs.get(keys[0]) is run


def test_promises_are_those_of_the_decoders() -> None:
    assert [entry.promise for entry in entries_of([sjd(3)], SETTINGS, True)] == [
        "reference",
        str(Promise.SAME_DISTRIBUTION),
    ]
