"""What "auto" in the widgets of Generate Image Tokens becomes."""

from __future__ import annotations

import math

import pytest
from jacobi_ar.decoding import SamplingSettings, TokenGrid, greedy_jacobi, same_picture
from jacobi_ar.model_loaders.errors import GridError
from jacobi_ar.model_loaders.image_model import ImageModel, SamplingDefaults
from jacobi_ar.nodes.run_settings import RunSettings, for_decoder, resolve


class Model:
    """As much of an ImageModel as the settings need; the grids are a family's, the default first."""

    name = "a model"
    defaults = SamplingDefaults(guidance=7.5, temperature=0.7, top_k=1000, top_p=0.9)
    grids = [TokenGrid(4, 4), TokenGrid(4, 8), TokenGrid(6, 2)]
    grid = ImageModel.grid


def settings(
    guidance: float = -1.0,
    top_k: int = -1,
    shape: tuple[int, int] = (0, 0),
    temperature: float = -1.0,
    top_p: float = -1.0,
    seed: int = 1,
    batch_size: int = 1,
) -> RunSettings:
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    return resolve(Model(), seed, batch_size, guidance, sampling, shape)


def test_auto_is_the_models_own_and_is_said() -> None:
    auto = settings()
    assert (auto.guidance, auto.sampling) == (7.5, SamplingSettings(0.7, 1000, 0.9))
    assert auto.grid == TokenGrid(4, 4)
    assert auto.automatic == {"guidance", "temperature", "top-k", "top-p", "grid"}
    own = "auto: guidance 7.5, temperature 0.7, top-k 1000, top-p 0.9"
    assert auto.lines()[0] == own


def test_what_is_given_stays() -> None:
    given = settings(guidance=0.0, top_k=0, shape=(4, 8), temperature=0.5, top_p=1.0)
    assert (given.guidance, given.sampling) == (0.0, SamplingSettings(0.5, 0, 1.0))
    assert given.grid == TokenGrid(4, 8) and not given.automatic


@pytest.mark.parametrize(
    ("shape", "grid"), [((6, 0), (6, 2)), ((0, 8), (4, 8)), ((0, 2), (6, 2)), ((4, 0), (4, 4))]
)
def test_one_side_of_the_grid_brings_the_other(shape: tuple[int, int], grid: tuple[int, int]) -> None:
    chosen = settings(shape=shape)
    assert (chosen.grid.rows, chosen.grid.cols) == grid
    assert "grid" not in chosen.automatic


@pytest.mark.parametrize("shape", [(5, 0), (0, 5), (6, 8)])
def test_a_grid_that_the_model_does_not_make_names_those_it_does(shape: tuple[int, int]) -> None:
    todo = "4 x 4, 4 x 8, 6 x 2. Set rows and columns to one of these, or both to 0 for 4 x 4"
    with pytest.raises(GridError, match=todo):
        settings(shape=shape)


def test_a_model_of_one_grid_says_that_0_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "grids", [TokenGrid(16, 16)])
    with pytest.raises(GridError, match="17 x 16 tokens; it makes 16 x 16. Set rows and columns to 0 for 16"):
        settings(shape=(17, 0))


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ((7,), "seed 7"),
        ((7, 8), "seeds 7, 8"),
        ((7, 8, 9), "seeds 7 to 9"),
        ((2**64 - 1, 0, 1), f"seeds {2**64 - 1}, 0, 1"),
    ],
)
def test_the_seeds_of_a_batch_take_one_line(seeds: tuple[int, ...], words: str) -> None:
    shown = settings(seed=seeds[0], batch_size=len(seeds))
    assert shown.seeds == seeds and shown.lines()[1].endswith(f" · {words}")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch_size", 0, "batch_size must be a whole number from 1 to 64, got 0"),
        ("batch_size", -2, "batch_size .* got -2"),
        ("batch_size", 65, "batch_size .* got 65"),
        ("seed", -1, "seed must be .* got -1"),
        ("seed", 2**64, "seed must be .* got 18446744073709551616"),
        ("seed", 1.5, "seed must be a whole number .* got 1.5"),
        ("shape", (-3, 0), "rows must be .* got -3"),
        ("shape", (0, 1025), "columns must be .* got 1025"),
        ("guidance", math.nan, "guidance must be a number from 0 to 30, or -1 .* got nan"),
        ("guidance", math.inf, "guidance .* got inf"),
        ("guidance", -math.inf, "guidance .* got -inf"),
        ("guidance", "strong", 'guidance .* got "strong"'),
        ("guidance", -0.5, "guidance .* got -0.5"),
        ("top_k", -3, "top_k must be .* or -1 .* got -3"),
        ("temperature", -0.5, "temperature must be a number from 0 to 10, or -1 .* got -0.5"),
        ("temperature", 10.5, "temperature .* got 10.5"),
        ("temperature", "hot", 'temperature .* got "hot"'),
        ("top_p", 0.0, "top_p must be a number from 0.01 to 1, or -1 .* got 0"),
        ("top_p", math.nan, "top_p .* got nan"),
    ],
)
def test_what_no_widget_holds_is_refused(name: str, value: object, said: str) -> None:
    """What comes by wire is held against no range by ComfyUI, and NaN passes every comparison."""
    with pytest.raises(ValueError, match=said):
        settings(**{name: value})


def test_the_ends_of_the_ranges_are_inside() -> None:
    most = settings(
        guidance=30.0, temperature=10.0, top_k=1_000_000, top_p=1.0, seed=2**64 - 1, batch_size=64
    )
    assert most.seeds[:2] == (2**64 - 1, 0) and len(most.seeds) == 64 and not most.automatic - {"grid"}


def test_the_greedy_decoder_is_temperature_zero_and_says_so() -> None:
    asked = settings(temperature=0.7, top_k=5)  # top-p is automatic
    greedy = for_decoder(asked, greedy_jacobi(3))
    assert greedy.sampling == SamplingSettings(temperature=0.0)
    assert greedy.lines()[0] == "top-k off · auto: guidance 7.5, temperature 0"
    assert greedy.automatic == {"guidance", "temperature", "grid"}
    assert for_decoder(asked, same_picture(3)) is asked
