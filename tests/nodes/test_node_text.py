"""Lines on a node are broken where a person would break them."""

from __future__ import annotations

import random

import pytest
from jacobi_ar.nodes.node_text import COLUMNS, wrapped

SUMMARY = "23 passes for 256 tokens · 11.1 a pass · 0.74 s"


def test_facts_stay_whole() -> None:
    assert len(SUMMARY) <= COLUMNS and wrapped(SUMMARY) == SUMMARY
    assert wrapped("guidance 1.5 (auto) · temperature 1 (auto) · top-k off (auto)") == (
        "guidance 1.5 (auto) · temperature 1 (auto)\ntop-k off (auto)"
    )


def test_a_long_fact_breaks_between_words() -> None:
    assert wrapped("Pictures from exactly the model's distribution, another one for each seed.") == (
        "Pictures from exactly the model's distribution,\nanother one for each seed."
    )


def test_a_path_is_not_broken_and_empty_lines_stay() -> None:
    path = "/models/ar_image/" + "a-very-long-name" * 4
    assert wrapped(f"saved in {path} now\n\nend") == f"saved in\n{path}\nnow\n\nend"


def test_no_word_is_lost_and_no_line_is_too_long() -> None:
    dice = random.Random(0)
    for _ in range(500):
        text = "".join(dice.choices(["a", "bb", " ", " · ", "\n"], k=dice.randrange(200)))
        columns = dice.randint(8, 60)
        lines = wrapped(text, columns).split("\n")
        assert words("\n".join(lines)) == words(text)
        assert all(len(line) <= columns or " " not in line.strip() for line in lines)


def words(text: str) -> str:
    return "".join(text.replace("·", "").split())


@pytest.mark.parametrize("columns", [COLUMNS, 90])
def test_wrapping_twice_changes_nothing(columns: int) -> None:
    once = wrapped(f"{SUMMARY} · {SUMMARY}, and more words than one line has room for", columns)
    assert wrapped(once, columns) == once
