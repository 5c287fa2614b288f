"""The templates of other models: they name what the loader shows, and lead to the files where it is
absent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.model_loaders.published import FILES, REPOSITORIES, where_to_get
from jacobi_ar.nodes.model_files import pick, weight_choices
from jacobi_ar.tests.toy_published import PUBLISHED
from jacobi_ar.tools.family_cards import CARDS
from jacobi_ar.tools.template_cards import card_of, shown_images
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]*\w)")
FOLDER = re.compile(r"models/\w+(?:/[\w.-]*\w)?")


def nodes(template: str) -> dict[str, dict[str, Any]]:
    workflow = json.loads((ROOT / "workflows" / f"{template}.json").read_text(encoding="utf-8"))
    return {node["type"]: node for node in workflow["nodes"]}


def model_of(template: str) -> str:
    return nodes(template)["JacobiARLoadModel"]["widgets_values"][0]


def note_of(template: str) -> str:
    return nodes(template)["MarkdownNote"]["widgets_values"][0]


def test_every_template_without_the_built_in_model_is_one_of_these() -> None:
    named = {path.stem for path in (ROOT / "workflows").glob("*.json") if "Load" in path.read_text("utf-8")}
    others = {
        name
        for name in named
        if "JacobiARLoadModel" in nodes(name) and not model_of(name).startswith("built-in")
    }
    assert others == set(PUBLISHED)


@pytest.mark.parametrize("template", PUBLISHED)
def test_settings_are_the_familys_own_and_the_picture_is_that_of_step_by_step(template: str) -> None:
    found = nodes(template)
    assert found["JacobiARGenerate"]["widgets_values"][1:] == ["fixed", -1, -1, -1, -1, 0, 0, 1]
    assert found["JacobiARLoadModel"]["widgets_values"][1:] == ["auto", "auto", "auto"]
    assert found["JacobiARDecoderSamePicture"]["widgets_values"] == [31, "uniform", True]


@pytest.mark.parametrize("template", PUBLISHED)
def test_the_error_without_the_files_names_what_the_note_names(template: str, tmp_path: Path) -> None:
    model = model_of(template)
    source = where_to_get(model)
    with pytest.raises(ValueError, match=re.escape(f'model "{model}" was not found')) as caught:
        pick("model", model, weight_choices([tmp_path]), [tmp_path], source)
    message, note = str(caught.value), note_of(template)
    assert set(ADDRESS.findall(message)) <= set(ADDRESS.findall(note))
    assert set(FOLDER.findall(message)) <= set(FOLDER.findall(note))
    files = re.findall(r"[\w.*-]+\.(?:pt|ckpt|json|safetensors)\b", message)
    assert [file for file in files if file not in note] == []
    assert message.endswith("; then press R to refresh and choose again.")


@pytest.mark.parametrize("template", PUBLISHED)
def test_what_the_note_and_the_message_name_is_in_the_table_of_models(template: str) -> None:
    table = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    told = note_of(template) + where_to_get(model_of(template))
    assert [name for name in ADDRESS.findall(told) if f"https://huggingface.co/{name})" not in table] == []


def test_every_name_leads_to_a_repository_of_the_table() -> None:
    table = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    for name, (repository, _, _) in (REPOSITORIES | FILES).items():
        assert f"https://huggingface.co/{repository})" in table, name


def test_names_in_folders_are_known_and_others_are_not() -> None:
    expected = where_to_get("Janus-Pro-1B")
    assert expected.endswith(
        "huggingface.co/deepseek-ai/Janus-Pro-1B into the folder models/ar_image/Janus-Pro-1B"
    )
    assert where_to_get("Janus-Pro/Janus-Pro-1B") == expected
    assert where_to_get("Anole-7b-v0.1/models/7b") == where_to_get("Anole-7b-v0.1") != ""
    assert where_to_get("my-model.safetensors") == where_to_get({"a": 1}) == where_to_get("") == ""


@pytest.mark.parametrize("template", PUBLISHED)
def test_the_files_of_the_note_are_shown_by_the_name_in_the_template(template: str, tmp_path: Path) -> None:
    for folder in ("ar_image", "text_encoders"):
        (tmp_path / folder).mkdir()
    PUBLISHED[template](tmp_path)
    assert model_of(template) in weight_choices([tmp_path / "ar_image"])


@pytest.mark.parametrize("template", PUBLISHED)
def test_a_card_is_small_and_square(template: str) -> None:
    path = ROOT / "workflows" / f"{template}.jpg"
    assert Image.open(path).size == (384, 384) and path.stat().st_size < 25_000


def test_every_card_is_from_a_run_or_an_ornament() -> None:
    """`dev.py cards` runs what has no ornament, so that has to need no download."""
    assert set(CARDS) == set(PUBLISHED)


def test_a_card_shows_what_the_run_saves_or_what_is_named() -> None:
    saved, seen = ({"filename": name, "type": kind} for name, kind in (("a", "output"), ("b", "temp")))
    outputs = {"7": {"images": [seen]}, "11": {"images": [saved]}, "9": {"text": ["no picture"]}}
    assert list(shown_images("quickstart", outputs)) == [saved]
    assert list(shown_images("same_picture", outputs)) == [seen, saved]
    picture = Image.new("RGB", (20, 10), "red")
    assert card_of([picture]).getpixel((0, 0)) == (255, 0, 0)
    assert card_of([picture] * 3).getpixel((383, 383)) == (255, 255, 255)
