"""Listing, converting and loading model files inside ComfyUI."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jacobi_ar.tests.host.support import LOAD, Host, node_of
from jacobi_ar.tools.comfy_server import ROOT
from jacobi_ar.tools.demo import ENCODE, GENERATE

pytestmark = pytest.mark.host

GOLDEN = ROOT / "tests" / "golden"
BUILTIN = ROOT / "model_loaders" / "builtin"
LIST: dict[str, dict[str, Any]] = {"1": {"class_type": "JacobiARListModels", "inputs": {}}}


def converting(**inputs: Any) -> dict[str, dict[str, Any]]:
    usual = {
        "model": "built-in (emoji and flags)",
        "tokenizer": "auto",
        "dtype": "bfloat16",
        "name": "alone",
        "overwrite": True,
    }
    return {"1": {"class_type": "JacobiARConvertModel", "inputs": usual | inputs}}


def loading(host: Host, **inputs: str) -> dict[str, dict[str, Any]]:
    prompt = host.quickstart(seed=23)
    prompt[node_of(prompt, LOAD)]["inputs"] |= inputs
    return prompt


@pytest.fixture
def models(test_folder: Path, host: Host) -> Path:
    folder = test_folder / "base" / "models"
    (folder / "ar_image").mkdir(parents=True, exist_ok=True)
    return folder


def text_of(host: Host, prompt: dict[str, dict[str, Any]]) -> str:
    run = host.run(prompt)
    assert run.status == "success", run.error
    return "\n".join(run.outputs["1"]["text"])


def test_models_are_listed_where_people_have_them(host: Host, models: Path) -> None:
    data = (BUILTIN / "builtin_ar.safetensors").read_bytes()
    places = {"ar_image/listed.safetensors": data, "Janus-Pro/some/listed.safetensors": data}
    places["ar_image/listed_cut.safetensors"] = data[:1000]
    places["vae/listed_vq.safetensors"] = (BUILTIN / "builtin_vq.safetensors").read_bytes()
    places["vae/other.safetensors"] = b"no tokenizer"
    for name, content in places.items():
        (models / name).parent.mkdir(parents=True, exist_ok=True)
        (models / name).write_bytes(content)
    text = text_of(host, LIST)
    for name in ("listed.safetensors", "Janus-Pro/some/listed.safetensors"):
        assert f"\n{name}: the built-in model" in text
    assert "listed_cut.safetensors: does not load" in text
    assert "vae/listed_vq.safetensors: image tokenizer" in text and "other.safetensors" not in text
    run = host.run(
        loading(host, model="Janus-Pro/some/listed.safetensors", tokenizer="vae/listed_vq.safetensors")
    )
    assert run.status == "success", run.error
    for name in places:
        (models / name).unlink()
    assert "listed" not in text_of(host, LIST)  # the list is made anew


def test_a_text_encoder_that_is_added_after_the_error_is_seen(host: Host, models: Path) -> None:
    pytest.importorskip("transformers")
    from jacobi_ar.tests.test_t5 import write_encoder

    files = {"late_t2i.pt": "llamagen_t2i_tiny.pt", "late_vq.pt": "llamagen_vq_tiny.pt"}
    for name, source in files.items():
        shutil.copy(GOLDEN / source, models / "ar_image" / name)
    encoder = models / "text_encoders" / "late-t5"
    prompt = loading(host, model="late_t2i.pt", tokenizer="auto", text_encoder="auto")
    try:
        (data,) = host.run(prompt).data("execution_error")
        assert data["node_type"] == ENCODE and "flan-t5-xl" in data["exception_message"]
        write_encoder(encoder)
        run = host.run(prompt)
        assert run.status == "success", run.error
    finally:
        shutil.rmtree(encoder, ignore_errors=True)
        for name in files:
            (models / "ar_image" / name).unlink()


def test_a_file_for_another_grid_is_warned_of(host: Host, models: Path) -> None:
    files = {"small_256.pt": "llamagen_c2i_tiny.pt", "small_vq.pt": "llamagen_vq_tiny.pt"}
    for name, source in files.items():
        shutil.copy(GOLDEN / source, models / "ar_image" / name)
    prompt = loading(host, model="small_256.pt", tokenizer="auto")
    prompt[node_of(prompt, ENCODE)]["inputs"]["text"] = "7"
    generate = node_of(prompt, GENERATE)
    try:
        warned = host.run(prompt)
        assert warned.status == "success", warned.error
        assert ": set rows and columns to 16\n" in "".join(warned.outputs[generate]["text"])
        assert "set rows and columns to 16; 0 gives 24 x 24" in text_of(host, LIST)
        prompt[generate]["inputs"] |= {"rows": 16, "columns": 16}
        assert "warning" not in "".join(host.run(prompt).outputs[generate]["text"])
    finally:
        for name in files:
            (models / "ar_image" / name).unlink()


@pytest.mark.parametrize(
    ("dtype", "widget"),
    [("bfloat16", "bfloat16"), ("float8 weights", "float8 weights (bfloat16 arithmetic)")],
)
def test_a_converted_model_draws_what_the_original_draws(
    host: Host, models: Path, dtype: str, widget: str
) -> None:
    text = text_of(host, converting(dtype=dtype))
    assert "alone.safetensors: the built-in model" in text and "with the image tokenizer" in text
    try:
        original = host.picture(host.run(loading(host, dtype=widget)))
        alone = host.picture(host.run(loading(host, model="alone.safetensors", dtype=widget)))
        assert np.array_equal(original, alone)
        assert len(np.unique(original.reshape(-1, 3), axis=0)) > 20  # a picture, not one colour
        if dtype != "bfloat16":
            # What is in float8 stays so without being told. On a CPU "auto" computes in float32.
            run = host.run(loading(host, model="alone.safetensors", dtype="auto"))
            assert run.status == "success", run.error
    finally:
        (models / "ar_image" / "alone.safetensors").unlink()


def test_a_model_without_its_image_tokenizer_is_converted_with_a_warning(host: Host, models: Path) -> None:
    lone = models / "ar_image" / "lone.pt"
    shutil.copy(GOLDEN / "llamagen_c2i_tiny.pt", lone)
    try:
        text = text_of(host, converting(model="lone.pt"))
        assert "without an image tokenizer. Warning: " in text and "vq_ds16_c2i.pt" in text
        text = text_of(host, converting(model="lone.pt", tokenizer="none"))
        assert "without an image tokenizer" in text and "Warning" not in text
    finally:
        lone.unlink()
        (models / "ar_image" / "alone.safetensors").unlink(missing_ok=True)


def test_converting_stays_in_its_folder_and_overwrites_nothing(host: Host, models: Path) -> None:
    for name in ("../outside", "/tmp/outside", "a/b", ".hidden", "a\\b"):
        run = host.run(converting(name=name))
        (data,) = run.data("execution_error")
        assert data["exception_message"].startswith("Jacobi AR – Convert AR Image Model: name")
    file = models / "ar_image" / "mine.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    run = host.run(converting(name="mine", overwrite=False))
    (data,) = run.data("execution_error")
    assert "exists already" in data["exception_message"] and file.read_text() == "mine"
    assert not list(models.rglob("*.partial"))
    file.unlink()
