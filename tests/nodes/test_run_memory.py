"""What ComfyUI is asked to keep free for a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from jacobi_ar.decoding import (
    SamplingSettings,
    TokenGrid,
    lantern,
    pjd,
    sjd,
    with_prediction,
    with_semantics,
)
from jacobi_ar.model_loaders.float8 import float8_operations
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from jacobi_ar.nodes.memory_advice import advice, savings
from jacobi_ar.nodes.run_memory import LAW_COPIES, estimate, law_copies, neighbour_bytes
from jacobi_ar.nodes.run_settings import RunSettings


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
    assert sjd(7).schedule.most_laws(grid) == 8
    assert pjd(window=7, threshold=5).schedule.most_laws(grid) == 3 * 8
    assert pjd(window=7, threshold=1).schedule.most_laws(grid) == 4 * 8  # there are no more rows
    assert pjd(window=7, threshold=60).schedule.most_laws(grid) == 2 * 8


@pytest.fixture(scope="module")
def model() -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="meta", dtype=torch.float32)


def settings_of(model: ImageModel, **changed: Any) -> RunSettings:
    usual = {"grid": model.grids[0], "guidance": 2.0, "sampling": SamplingSettings(), "seeds": (1,)}
    return RunSettings(**(usual | changed))


def test_an_estimate_grows_with_pictures_guidance_and_window(model: ImageModel) -> None:
    prompt = model.encode_prompt("red heart")
    one = estimate(model, [prompt], sjd(15), settings_of(model))
    assert one.weights == model.weight_bytes
    two = estimate(model, [prompt] * 2, sjd(15), settings_of(model, seeds=(1, 2)))
    assert two.cache == 2 * one.cache and two.run == 2 * one.run and two.weights == one.weights
    assert estimate(model, [prompt], sjd(31), settings_of(model)).laws == 2 * one.laws
    unguided = estimate(model, [prompt], sjd(15), settings_of(model, guidance=1.0))
    assert 2 * unguided.cache == one.cache and unguided.laws == one.laws
    for part in ("weights", "cache", "drafts", "layers"):
        assert part in one.line()


def test_the_error_names_three_things_that_help_with_their_savings(model: ImageModel) -> None:
    prompt = model.encode_prompt("red heart")
    needed = estimate(model, [prompt], sjd(15), settings_of(model))
    text = advice(model, sjd(15), settings_of(model), needed, 5 * 2**20, gpu=False)
    assert text.count("(saves about") == 3 and "1) " in text and "3) " in text
    assert "5.0 MiB were free" in text and "in bfloat16" in text and "float8" in text
    saved = dict(savings(model, sjd(15), settings_of(model), needed, gpu=False))
    assert saved["set guidance to 1"] >= needed.cache // 2
    assert saved["choose a window of 7 instead of 15"] == needed.laws // 2
    assert "set guidance to 1" not in dict(
        savings(model, sjd(15), settings_of(model, guidance=1.0), needed, gpu=False)
    )
    narrow = load_image_model(
        BUILTIN_MODEL, device="meta", dtype=torch.bfloat16, operations=float8_operations(torch.nn)
    )
    listed = " ".join(dict(savings(narrow, sjd(1), settings_of(narrow), needed, gpu=True)))
    assert "--lowvram" in listed and "--lowvram" not in text
    assert "float8" not in listed and "bfloat16" not in listed and "window" not in listed
