"""The names in the loader's widgets, and when a file counts as changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jacobi_ar.nodes.model_files import (
    folder_choices,
    pick,
    signature,
    text_encoder_in,
    weight_choices,
)


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_files_and_folders_are_listed_once_and_shards_never(tmp_path: Path) -> None:
    put(tmp_path / "c2i_B_256.pt")
    put(tmp_path / "notes.txt")
    put(tmp_path / "llamagen" / "VQ.SAFETENSORS")
    for name in ("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        put(tmp_path / "big" / name)
    put(tmp_path / ".cache" / "hidden.safetensors")
    put(tmp_path / ".partial.safetensors")
    assert list(weight_choices([tmp_path])) == ["big", "c2i_B_256.pt", "llamagen/VQ.SAFETENSORS"]
    assert folder_choices([tmp_path]) == {"big": tmp_path / "big"}


def test_a_missing_folder_is_an_empty_one_and_the_first_root_wins(tmp_path: Path) -> None:
    first, second = put(tmp_path / "a" / "m.pt"), put(tmp_path / "b" / "m.pt")
    assert weight_choices([tmp_path / "none", first.parent, second.parent]) == {"m.pt": first}


def test_a_config_in_the_root_itself_makes_no_folder_choice(tmp_path: Path) -> None:
    put(tmp_path / "config.json")
    file = put(tmp_path / "m.safetensors")
    assert weight_choices([tmp_path]) == {"m.safetensors": file}


def test_an_unknown_name_says_where_it_was_looked_for_and_what_there_is(tmp_path: Path) -> None:
    files = weight_choices([put(tmp_path / "there.pt").parent])
    with pytest.raises(ValueError, match="there.pt") as caught:
        pick("model", "gone.pt", files, [tmp_path])
    assert "gone.pt" in str(caught.value) and str(tmp_path) in str(caught.value)


def test_a_link_to_nowhere_is_not_listed(tmp_path: Path) -> None:
    file = put(tmp_path / "there.pt")
    (tmp_path / "folder.pt").mkdir()
    try:
        (tmp_path / "dangling.safetensors").symlink_to(tmp_path / "gone.safetensors")
        (tmp_path / "link.pt").symlink_to(file)
    except OSError:
        pytest.skip("this system makes no links")
    assert list(weight_choices([tmp_path])) == ["link.pt", "there.pt"]


def test_an_object_is_no_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model {'a': 1} was not found"):
        pick("model", {"a": 1}, weight_choices([tmp_path]), [tmp_path])


def test_a_path_is_no_name(tmp_path: Path) -> None:
    """What is typed into a combo over the API cannot reach outside the folders."""
    secret = put(tmp_path / "secret.pt")
    inside = put(tmp_path / "models" / "m.pt").parent
    for name in ("../secret.pt", str(secret)):
        with pytest.raises(ValueError, match="was not found"):
            pick("model", name, weight_choices([inside]), [inside])


def test_a_signature_changes_with_the_file_and_only_then(tmp_path: Path) -> None:
    file = put(tmp_path / "m" / "a.pt")
    before, folder_before = signature(file), signature(file.parent)
    assert signature(file) == before
    os.utime(file, (1, 1))
    assert signature(file) != before and signature(file.parent) != folder_before


def test_the_text_encoder_is_the_first_t5_folder(tmp_path: Path) -> None:
    put(tmp_path / "a-broken" / "config.json", "{")
    put(tmp_path / "a-broken" / "model.safetensors")
    for name, kind in (("a-clip", "clip"), ("b-flan-t5-xl", "t5"), ("c-t5", "t5")):
        put(tmp_path / name / "config.json", f'{{"model_type": "{kind}"}}')
        put(tmp_path / name / "model.safetensors")
    assert text_encoder_in(folder_choices([tmp_path])) == tmp_path / "b-flan-t5-xl"
    assert text_encoder_in({}) is None


def test_the_text_encoder_is_the_t5_folder_of_the_models_width(tmp_path: Path) -> None:
    for name, width in (("a-t5-small", 512), ("b-flan-t5-xl", 2048), ("c-flan-t5-xl", 2048)):
        put(tmp_path / name / "config.json", f'{{"model_type": "t5", "d_model": {width}}}')
        put(tmp_path / name / "model.safetensors")
    folders = folder_choices([tmp_path])
    assert text_encoder_in(folders, 2048) == tmp_path / "b-flan-t5-xl"
    assert text_encoder_in(folders, 512) == tmp_path / "a-t5-small"
    # None fits: the loader's error then says what the first one lacks.
    assert text_encoder_in(folders, 4096) == text_encoder_in(folders) == tmp_path / "a-t5-small"


def test_folders_of_other_packages_come_under_their_names(tmp_path: Path) -> None:
    own = put(tmp_path / "ar_image" / "Janus-Pro" / "1B" / "m.pt").parents[2]
    for name in ("1B", "7B"):
        put(tmp_path / "Janus-Pro" / name / "config.json")
        put(tmp_path / "Janus-Pro" / name / "pytorch_model.bin")
    put(tmp_path / "emu35" / "config.json")
    put(tmp_path / "emu35" / "model.safetensors")
    known = {name: [tmp_path / name] for name in ("Janus-Pro", "emu35", "not there")}
    assert weight_choices([own], known) == {
        "emu35": tmp_path / "emu35",  # the folder itself is the model
        "Janus-Pro/1B": tmp_path / "Janus-Pro" / "1B",
        "Janus-Pro/1B/m.pt": own / "Janus-Pro" / "1B" / "m.pt",
        "Janus-Pro/7B": tmp_path / "Janus-Pro" / "7B",
    }
    put(own / "Janus-Pro" / "7B" / "config.json")
    put(own / "Janus-Pro" / "7B" / "a.safetensors")
    assert weight_choices([own], known)["Janus-Pro/7B"] == own / "Janus-Pro" / "7B"  # ours win


def test_a_folder_in_the_layout_of_meta_is_one_choice(tmp_path: Path) -> None:
    root = tmp_path / "ar_image"
    for name in ("consolidated.pth", "params.json"):
        put(root / "Anole-7b-v0.1" / "models" / "7b" / name)
    for name in ("vqgan.ckpt", "vqgan.yaml", "text_tokenizer.json"):
        put(root / "Anole-7b-v0.1" / "tokenizer" / name)
    put(root / "loose" / "params.json")
    put(root / "loose" / "a.pt")
    assert list(weight_choices([root])) == [
        "Anole-7b-v0.1/models/7b",
        "Anole-7b-v0.1/tokenizer/vqgan.ckpt",
        "loose/a.pt",
    ]


def test_a_link_that_leads_back_up_ends_the_walk(tmp_path: Path) -> None:
    put(tmp_path / "a" / "m.pt")
    try:
        (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    except OSError:
        pytest.skip("this system makes no links")
    assert list(weight_choices([tmp_path])) == ["a/m.pt"]
