"""The presets of the Jacobi Decoder node: names that stay, promises that hold for every family."""

from __future__ import annotations

from functools import partial
from inspect import getmembers, isclass

import pytest
from jacobi_ar.decoding import DecodingError, Promise, sjd, with_prediction, with_semantics
from jacobi_ar.model_loaders.families import builtin, janus, llamagen
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.nodes.presets import FAMILIES, PRESETS, Preset, added, resolved

PROMISES = {
    "same picture (safe)": Promise.SAME_PICTURE,
    "same distribution, fast": Promise.SAME_DISTRIBUTION,
    "approximate, fastest": Promise.APPROXIMATE,
    "step by step": Promise.SAME_PICTURE,
}


def test_names_and_their_order_are_those_of_saved_workflows() -> None:
    assert list(PRESETS) == list(PROMISES)


@pytest.mark.parametrize("name", PRESETS)
def test_every_family_keeps_the_promise_of_the_name(name: str) -> None:
    for family in [*FAMILIES, "a family of tomorrow"]:
        assert Preset(name).resolve(family).promise == PROMISES[name] == Preset(name).promise


def test_the_families_of_the_table_exist() -> None:
    modules = (builtin, janus, llamagen)
    models = [kind for module in modules for _, kind in getmembers(module, isclass)]
    known = {kind.family for kind in models if issubclass(kind, ImageModel) and hasattr(kind, "family")}
    assert set(FAMILIES) <= known


def test_settings_follow_the_family() -> None:
    windows = {family: Preset("same picture (safe)").resolve(family).schedule.window for family in FAMILIES}
    assert windows == {family: settings.window for family, settings in FAMILIES.items()}


def test_rows_run_together_where_the_paper_says_that_they_pay() -> None:
    for family, settings in FAMILIES.items():
        schedule = Preset("approximate, fastest").resolve(family).schedule
        assert getattr(schedule, "threshold", None) == settings.threshold


def test_additions_wait_with_the_preset() -> None:
    preset = added(Preset("same distribution, fast"), partial(with_prediction, growth=2))
    decoder = resolved(preset, "built-in")
    assert decoder.redrafter.law.growth == 2
    assert preset.promise == decoder.promise == Promise.SAME_DISTRIBUTION
    assert added(preset, with_semantics).promise == Promise.APPROXIMATE


def test_an_addition_that_does_not_fit_is_refused_where_it_is_added() -> None:
    with pytest.raises(DecodingError, match="semantics verification works over a ratio test"):
        added(Preset("same picture (safe)"), with_semantics)
    with pytest.raises(DecodingError, match="draws none"):
        added(Preset("step by step"), with_prediction)


def test_a_decoder_of_parts_passes_as_it_is() -> None:
    decoder = sjd(3)
    assert resolved(decoder, "built-in") is decoder
    assert added(decoder, with_semantics) == with_semantics(decoder)
