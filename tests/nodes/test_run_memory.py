"""What ComfyUI is asked to keep free for a run."""

from __future__ import annotations

from jacobi_ar.decoding import TokenGrid, lantern, pjd, sjd, with_prediction, with_semantics
from jacobi_ar.nodes.run_memory import LAW_COPIES, law_copies, law_rows, neighbour_bytes


def test_prediction_needs_memory_for_each_step_that_it_remembers() -> None:
    assert law_copies(sjd()) == LAW_COPIES
    two, three = (law_copies(with_prediction(sjd(), growth=growth)) for growth in (2, 3))
    assert three - two == two - law_copies(with_prediction(sjd(), growth=1)) > 0


def test_lantern_needs_its_list_of_neighbours_at_most_the_whole_codebook() -> None:
    assert neighbour_bytes(sjd(), 1024) == 0
    few, all_ = lantern(neighbours=10), lantern(neighbours=5000)
    assert neighbour_bytes(few, 1024) == neighbour_bytes(with_semantics(few), 1024) == 1024 * 10 * 8
    assert neighbour_bytes(all_, 1024) == 1024 * 1024 * 8


def test_rows_that_are_open_together_each_need_their_laws() -> None:
    grid = TokenGrid(4, 6)
    assert law_rows(sjd(7), grid) == 8
    assert law_rows(pjd(window=7, threshold=5), grid) == 3 * 8
    assert law_rows(pjd(window=7, threshold=1), grid) == 4 * 8  # there are no more rows
    assert law_rows(pjd(window=7, threshold=60), grid) == 2 * 8
