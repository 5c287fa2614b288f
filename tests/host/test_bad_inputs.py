"""Mistakes and damaged files: an error that names package, node and remedy, or a visible note."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.tests.host.support import LOAD, PREFIX, Host, node_of
from jacobi_ar.tools.client import Refused
from jacobi_ar.tools.comfy_server import ROOT
from jacobi_ar.tools.demo import ENCODE, GENERATE

pytestmark = pytest.mark.host


def error_of(host: Host, prompt: dict[str, Any], class_type: str) -> str:
    """The message of a run that has to fail at this node."""
    run = host.run(prompt)
    assert run.status == "error"
    (data,) = run.data("execution_error")
    assert data["node_type"] == class_type
    name = host.classes[class_type]["display_name"]
    message = data["exception_message"]
    assert message.startswith(f"Jacobi AR – {name}: "), message
    return message


def choice_error(host: Host, prompt: dict[str, Any], class_type: str) -> str:
    """The same for a choice that is not offered: ComfyUI from 0.8 on refuses it itself, before the run."""
    try:
        return error_of(host, prompt, class_type)
    except Refused as refused:
        return str(refused)


def with_value(prompt: dict[str, Any], class_start: str, name: str, value: Any) -> dict[str, Any]:
    prompt[node_of(prompt, class_start)]["inputs"][name] = value
    return prompt


@pytest.fixture
def model_folder(test_folder: Path, host: Host) -> Path:
    folder = test_folder / "base" / "models" / "ar_image"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_model_that_is_not_there(host: Host) -> None:
    message = error_of(host, with_value(host.quickstart(), LOAD, "model", "gone.safetensors"), LOAD)
    assert "gone.safetensors" in message


def test_a_model_outside_the_folders_is_not_opened(host: Host) -> None:
    outside = "../../../../model_loaders/builtin/builtin_ar.safetensors"
    error_of(host, with_value(host.quickstart(), LOAD, "model", outside), LOAD)


def test_a_truncated_file(host: Host, model_folder: Path) -> None:
    whole = (ROOT / "model_loaders" / "builtin" / "builtin_ar.safetensors").read_bytes()
    (model_folder / "truncated.safetensors").write_bytes(whole[: len(whole) // 2])
    message = error_of(host, with_value(host.quickstart(), LOAD, "model", "truncated.safetensors"), LOAD)
    assert "truncated.safetensors" in message


def test_a_file_that_is_no_model(host: Host, model_folder: Path) -> None:
    (model_folder / "note.safetensors").write_text("not a model", encoding="utf-8")
    message = error_of(host, with_value(host.quickstart(), LOAD, "model", "note.safetensors"), LOAD)
    assert "note.safetensors" in message


def test_a_grid_that_the_model_was_not_made_for(host: Host) -> None:
    message = error_of(host, host.quickstart(rows=7, columns=9), GENERATE)
    assert "it makes 16 x 16. Set rows and columns to 0" in message


@pytest.mark.parametrize(("name", "value"), [("window", 0), ("window", 10_000)])
def test_a_decoder_value_out_of_range_is_refused_before_the_run(host: Host, name: str, value: int) -> None:
    with pytest.raises(Refused, match=name):
        host.run(with_value(host.quickstart(), f"{PREFIX}Decoder", name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", -1.5), ("top_p", 1.5), ("seed", -1), ("seed", 2**64), ("batch_size", 0)],
)
def test_a_sampling_value_out_of_range_is_refused_before_the_run(host: Host, name: str, value: float) -> None:
    with pytest.raises(Refused, match=name):
        host.run(host.quickstart(**{name: value}))


def test_a_choice_that_does_not_exist(host: Host) -> None:
    prompt = with_value(host.quickstart(), f"{PREFIX}Decoder", "initialiser", "tea leaves")
    message = choice_error(host, prompt, prompt[node_of(prompt, f"{PREFIX}Decoder")]["class_type"])
    assert "initialiser" in message and "tea leaves" in message


@pytest.mark.parametrize(
    ("class_start", "name", "class_type"),
    [
        (GENERATE, "decoder", GENERATE),
        (GENERATE, "model", GENERATE),
        (GENERATE, "prompt", GENERATE),
        (ENCODE, "model", ENCODE),
        ("JacobiARDecodeTokens", "tokens", "JacobiARDecodeTokens"),
        ("JacobiARDecodeTokens", "tokenizer", "JacobiARDecodeTokens"),
    ],
)
def test_a_string_where_a_wire_belongs(host: Host, class_start: str, name: str, class_type: str) -> None:
    message = error_of(host, with_value(host.quickstart(), class_start, name, "words"), class_type)
    assert f"{name} must be connected to" in message


@pytest.mark.parametrize(
    ("class_start", "name"),
    [(f"{PREFIX}DecoderSame", "initialiser"), (LOAD, "model"), (LOAD, "tokenizer"), (LOAD, "text_encoder")],
)
def test_an_object_where_a_choice_belongs(host: Host, class_start: str, name: str) -> None:
    prompt = with_value(host.quickstart(), class_start, name, {"a": 1})
    message = choice_error(host, prompt, prompt[node_of(prompt, class_start)]["class_type"])
    assert name in message and "'a'" in message


@pytest.mark.parametrize(
    ("name", "value"), [("batch_size", 0), ("batch_size", -2), ("seed", -1), ("rows", -3), ("top_k", -3)]
)
def test_a_wired_value_out_of_range(host: Host, name: str, value: int) -> None:
    """ComfyUI holds what comes by wire against no range."""
    prompt = with_value(host.quickstart(), GENERATE, name, ["wired", 0])
    prompt["wired"] = {"class_type": "PrimitiveInt", "inputs": {"value": value}}
    message = error_of(host, prompt, GENERATE)
    assert f"{name} must be a whole number" in message and str(value) in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("guidance", float("nan")), ("guidance", -0.5), ("temperature", -0.5), ("top_p", 0.0)],
)
def test_a_number_between_automatic_and_the_range(host: Host, name: str, value: float) -> None:
    assert f"{name} must be a number" in error_of(host, host.quickstart(**{name: value}), GENERATE)


def test_a_copy_of_the_builtin_model_beside_a_dangling_link(host: Host, model_folder: Path) -> None:
    """The automatic tokenizer is then the packaged one."""
    copy, link = model_folder / "copy.safetensors", model_folder / "dangling.safetensors"
    copy.write_bytes((ROOT / "model_loaders" / "builtin" / "builtin_ar.safetensors").read_bytes())
    link.unlink(missing_ok=True)
    with suppress(OSError):  # where the system makes no links, the copy alone
        link.symlink_to(model_folder / "gone.safetensors")
    run = host.run(with_value(host.quickstart(), LOAD, "model", copy.name))
    assert run.status == "success", run.error


def test_words_that_the_model_does_not_know_are_named_on_the_node(host: Host) -> None:
    prompt = host.quickstart(text="red heart xylograph")
    run = host.run(prompt)
    assert run.status == "success"
    assert "xylograph" in " ".join(run.outputs[node_of(prompt, ENCODE)]["text"])


@pytest.mark.parametrize(
    "text", ["", "   ", "red heart xylograph " * 2000], ids=["empty", "blank", "very long"]
)
def test_empty_and_very_long_prompts_make_a_picture_and_a_note(host: Host, text: str) -> None:
    prompt = host.quickstart(text=text)
    run = host.run(prompt)
    assert run.status == "success", run.error
    assert "".join(run.outputs[node_of(prompt, ENCODE)]["text"]).strip() not in ("", "prompt encoded")
