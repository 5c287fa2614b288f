"""What a run says of itself."""

from __future__ import annotations

import json

import numpy as np
import torch
from jacobi_ar.decoding import Promise, SamplingSettings, TokenGrid, Trace, same_picture
from jacobi_ar.nodes.fixed_tokens import APPROXIMATE_NOTE
from jacobi_ar.nodes.node_text import wrapped
from jacobi_ar.nodes.previews import preview_words
from jacobi_ar.nodes.report import facts, progress_line, summary
from jacobi_ar.nodes.run_settings import RunSettings

GRID = TokenGrid(2, 3)
TOP = 2**64 - 1
AUTOMATIC = frozenset({"guidance", "temperature", "top-k", "top-p"})


def example(seeds: tuple[int, ...]) -> tuple[Trace, RunSettings]:
    """Six tokens in three passes: one by the prefill, two, three."""
    decoder = same_picture(window=3)
    steps = np.broadcast_to(np.array([[1, 2, 2], [3, 3, 3]]), (len(seeds), 2, 3))
    counts = [[0] * len(seeds), [1] * len(seeds), [2] * len(seeds)]
    trace = Trace(decoder.describe(), decoder.promise, list(seeds), steps, counts)
    settings = RunSettings(GRID, 1.5, SamplingSettings(1.0, 0, 0.9), seeds, frozenset({"guidance", "grid"}))
    return trace, settings


def test_the_summary_says_passes_promise_and_what_auto_meant() -> None:
    trace, settings = example((7,))
    text = "\n".join(summary(trace, same_picture(window=3), settings, 1.234))
    for part in ("3 passes for 6 tokens", "2.0 a pass", "1.23 s", "same picture", "seed 7"):
        assert part in text
    assert "auto: guidance 1.5" in text and "grid 2 x 3 (auto)" in text
    assert "top-k off ·" in text and "top-p 0.9" in text


def test_a_batch_names_the_seed_of_each_picture() -> None:
    trace, settings = example((TOP, 0))
    text = "\n".join(summary(trace, same_picture(window=3), settings, 1.0))
    assert "of each of 2 pictures" in text and f"seeds {TOP}, 0" in text


def test_the_longest_of_texts_has_room_on_its_node() -> None:
    """A batch with fixed tokens: with two lines on memory and two on the decoder the 11 that the page
    shows."""
    decoder, seeds = same_picture(window=3), tuple(range(109, 118))
    kept = torch.full((9, 16, 16), -1)
    kept[:, 0], kept[:, 9] = 5, 5
    settings = RunSettings(TokenGrid(16, 16), 1.5, SamplingSettings(), seeds, AUTOMATIC, kept)
    steps = np.broadcast_to(np.arange(256).reshape(16, 16), (9, 16, 16))
    trace = Trace(decoder.describe(), Promise.APPROXIMATE, list(seeds), steps, [[0] * 9] * 224)
    text = wrapped("\n".join(summary(trace, decoder, settings, 11.88, preview_words(9))))
    assert "preview: 4 of 9 pictures" in text and "given: 32 of 256 tokens" in text
    assert len(text.split("\n")) <= 7, text


def test_facts_are_json_and_keep_all_bits_of_a_seed() -> None:
    trace, settings = example((TOP, 0))
    back = json.loads(json.dumps(facts(trace, same_picture(window=3), settings, 1.0, 0.05)))
    assert back["passes"] == 3 and back["autoregressive_passes"] == 6 and back["passes_of"] == [3, 3]
    assert back["tokens"] == 12 and back["batch"] == 2 and back["promise"] == "same picture"
    assert back["seeds"] == [str(TOP), "0"] and back["automatic"] == ["grid", "guidance"]


def test_progress_counts_tokens_of_one_picture_a_pass() -> None:
    assert progress_line(96, 512, 12, 2) == "96/512 tokens · 12 passes · 4.0 tokens a pass"
    assert progress_line(96, 512, 12, 2, given=72) == "96/512 tokens · 12 passes · 1.0 tokens a pass"


def test_given_tokens_are_told_and_not_counted() -> None:
    """The first row was given, and then a token behind a drawn one."""
    decoder = same_picture(window=3)
    kept = torch.tensor([[[5, 5, 5], [-1, -1, -1]], [[5, 5, 5], [-1, -1, 7]]])
    steps = np.array([[[0, 0, 0], [2, 3, 3]], [[0, 0, 0], [2, 3, 0]]])
    settings = RunSettings(GRID, 1.0, SamplingSettings(), (1, 2), kept=kept)
    trace = Trace(decoder.describe(), Promise.APPROXIMATE, [1, 2], steps, [[0, 0]] * 3)
    text = "\n".join(summary(trace, decoder, settings, 1.0))
    assert "3 passes for 3 tokens of each of 2 pictures · 1.0 a pass" in text
    assert f"promise: approximate ({APPROXIMATE_NOTE})\n" in text
    assert "given: 4 of 6 tokens; the first 3 of 6 tokens (1 row)" in text
    found = facts(trace, decoder, settings, 1.0, 0.0)
    assert found["tokens"] == 5 and found["promise"] == "approximate"
