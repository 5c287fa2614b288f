"""The table and the report of a trace say what the trace says."""

from __future__ import annotations

import numpy as np
import pytest
from jacobi_ar.decoding import Promise, Trace
from jacobi_ar.nodes.trace_report import fixed_in_passes, report_of, round_up, table


def trace(entropy: bool = True, given: bool = False) -> Trace:
    """Two pictures of six tokens: one in three passes, one in four; the first token of both may be given."""
    steps = np.array([[[1, 2, 2], [3, 3, 3]], [[1, 2, 3], [3, 4, 4]]])
    bits = np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 4
    if given:
        steps[:, 0, 0], bits[:, 0, 0] = 0, np.nan
    accepted = [[0, 0], [1, 0], [2, 1], [-1, 1]]
    return Trace(
        "SJD: window 3", Promise.SAME_DISTRIBUTION, [7, 8], steps, accepted, bits if entropy else None
    )


def test_the_table_holds_the_values_of_the_trace() -> None:
    heading, _, head, _, first, second = table(trace()).splitlines()
    assert heading == "SJD: window 3 (promise: same distribution), 4 passes in all"
    assert head.count("|") == first.count("|") == 9
    assert first == "| 1 | 7 | 6 | 3 | 2.00 | 3 | 1.00 | 0.62 |"
    assert second == "| 2 | 8 | 6 | 4 | 1.50 | 2 | 0.50 | 2.12 |"


def test_tokens_fixed_in_the_passes_are_all_that_were_decoded() -> None:
    assert fixed_in_passes(trace(), 0) == [1, 2, 3] and fixed_in_passes(trace(), 1) == [1, 1, 2, 2]
    assert sum(fixed_in_passes(trace(given=True), 0)) == 5


def test_the_report_is_of_its_picture() -> None:
    found = report_of(trace(), 1, "a fox", None)
    assert found.title == "a fox · SJD" and found.fixed == [1, 1, 2, 2]
    assert dict((name, value) for value, name in found.figures) == {
        "passes": "4",
        "tokens a pass": "1.5",
        "fewer passes than AR": "1.5x",
        "bits of entropy, mean": "2.12",
    }
    assert "seed 8 · picture 2 of 2" in found.lines[1]
    assert found.pass_of.tolist() == [[1, 2, 3], [3, 4, 4]]
    assert np.array_equal(found.entropy, trace().entropy[1])


def test_all_pictures_of_a_run_share_one_scale_of_entropy() -> None:
    assert (
        report_of(trace(), 0, None, None).most_entropy
        == report_of(trace(), 1, None, None).most_entropy
        == 2.8
    )


def test_given_tokens_have_neither_pass_nor_entropy() -> None:
    found = report_of(trace(given=True), 0, "", None)
    assert np.isnan(found.pass_of[0, 0]) and np.isnan(found.entropy[0, 0])
    assert not np.isnan(found.pass_of.ravel()[1:]).any()
    assert found.title.startswith("(no prompt)")
    assert "| 5 | 3 | 1.67 |" in table(trace(given=True))


def test_a_picture_of_given_tokens_alone_has_a_report() -> None:
    steps, bits = np.zeros((1, 2, 2), np.int64), np.full((1, 2, 2), np.nan, np.float32)
    nothing = Trace("SJD: window 3", Promise.SAME_DISTRIBUTION, [7], steps, [[0]], bits)
    assert table(nothing).splitlines()[-1] == "| 1 | 7 | 0 | 1 | 0.00 | 0 | 0.00 | – |"
    assert report_of(nothing, 0, None, None).fixed == [0]


def test_a_trace_without_entropy_says_so() -> None:
    assert table(trace(entropy=False)).splitlines()[-1].endswith("| – |")
    assert report_of(trace(entropy=False), 0, None, None).entropy is None


@pytest.mark.parametrize(("value", "top"), [(0.0, 0.1), (2.31, 2.4), (2.3, 2.3)])
def test_the_top_of_a_scale(value: float, top: float) -> None:
    assert round_up(value) == top
