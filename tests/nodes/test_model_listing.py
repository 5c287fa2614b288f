"""The list of models: every kind of file says what it is, what it lacks, or why it does not load."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders import look as looking
from jacobi_ar.model_loaders.checkpoint import open_checkpoint
from jacobi_ar.model_loaders.load import BUILTIN_MODEL
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from jacobi_ar.model_loaders.look import look
from jacobi_ar.model_loaders.missing_parts import text_source
from jacobi_ar.model_loaders.published import FILES, REPOSITORIES
from jacobi_ar.nodes.model_files import unfinished, weight_choices
from jacobi_ar.nodes.model_listing import listing
from jacobi_ar.tests.tiny_tokenizer import write_tokenizer
from safetensors.torch import save_file

GOLDEN = Path(__file__).parents[1] / "golden"
COMPANIONS = [
    "FoundationVision/LlamaGen/resolve/main/vq_ds16_c2i.pt",
    "huggingface.co/google/flan-t5-xl",
    "huggingface.co/BAAI/Emu3-VisionTokenizer",
    "Alpha-VLLM/Lumina-mGPT-7B-768/resolve/main/tokenizer.json",
]
PACKAGED = {"built-in": BUILTIN_TOKENIZER}


peek = partial(load_image_tokenizer, device="meta")


def told(folder: Path, encoder: Path | None = None) -> str:
    files, begun = weight_choices([folder]), unfinished([folder])
    return listing(files, [folder], PACKAGED, lambda model: encoder, look, peek, begun)


def paragraphs(folder: Path, encoder: Path | None = None) -> dict[str, str]:
    """Shown name -> its paragraph."""
    return dict(part.split(": ", 1) for part in told(folder, encoder).split("\n\n")[1:])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(BUILTIN_MODEL, tmp_path / "small.safetensors")
    shutil.copy(GOLDEN / "llamagen_c2i_tiny.pt", tmp_path / "c2i.pt")
    shutil.copy(GOLDEN / "llamagen_t2i_tiny.pt", tmp_path / "t2i.pt")
    return tmp_path


def test_models_say_what_they_are_and_what_they_lack(folder: Path) -> None:
    found = paragraphs(folder)
    assert found["small.safetensors"].startswith("the built-in model\n")
    assert (
        "million parameters" in found["small.safetensors"]
        and "image tokenizer: built-in" in found["small.safetensors"]
    )
    source = "https://huggingface.co/FoundationVision/LlamaGen/resolve/main/vq_ds16_c2i.pt"
    assert f"missing. Download {source} into the folder models/ar_image" in found["c2i.pt"]
    assert "text encoder" not in found["c2i.pt"]
    assert "huggingface.co/google/flan-t5-xl into the folder models/text_encoders" in found["t2i.pt"]
    assert "text encoder: flan" in paragraphs(folder, Path("flan"))["t2i.pt"]


def test_llamagen_says_its_grid_or_that_it_does_not(folder: Path) -> None:
    (folder / "c2i.pt").rename(folder / "c2i_B_256.pt")
    found = paragraphs(folder)
    assert "16 x 16 tokens (256 in its name): set rows and columns to 16" in found["c2i_B_256.pt"]
    assert "trained grid unknown: rows and columns 0 give 32 x 32" in found["t2i.pt"]
    assert "rows and columns" not in found["small.safetensors"]


def test_a_mirror_of_the_hub_is_named_instead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert "https://mirror.example/FoundationVision/LlamaGen/resolve" in paragraphs(folder)["c2i.pt"]


def test_an_image_tokenizer_is_found_for_its_model(folder: Path) -> None:
    shutil.copy(GOLDEN / "llamagen_vq_tiny.pt", folder / "vq.pt")
    found = paragraphs(folder)
    assert found["vq.pt"].startswith("image tokenizer (llamagen")
    sizes = {name: look(folder / name).vocabulary for name in ("c2i.pt", "vq.pt")}
    assert ("image tokenizer: vq.pt" in found["c2i.pt"]) == (sizes["c2i.pt"] == sizes["vq.pt"])


def test_what_does_not_load_says_why(folder: Path) -> None:
    whole = BUILTIN_MODEL.read_bytes()
    (folder / "cut.safetensors").write_bytes(whole[: len(whole) // 2])
    (folder / "note.pt").write_text("hello")
    save_file({"unet.weight": torch.ones(2)}, folder / "other.safetensors")
    (folder / "big").mkdir()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "big" / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "big" / "config.json").write_text("{}")
    save_file({"a": torch.ones(1)}, folder / "big" / "model-00001-of-00002.safetensors")
    found = paragraphs(folder)
    for name, reason in {
        "cut.safetensors": "cut off or damaged",
        "note.pt": "no safetensors and no torch file",
        "other.safetensors": "unet.weight",
        "big": "model-00002-of-00002.safetensors",
    }.items():
        assert found[name].startswith("does not load\n") and reason in found[name]
    assert len(found) == 7


def test_a_folder_whose_weights_have_not_come_is_listed(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
    for name in ("begun", "bare", "whole", "whole/part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "begun" / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text("{}")
    shutil.copy(BUILTIN_MODEL, tmp_path / "whole" / "model.safetensors")
    found = paragraphs(tmp_path)
    assert set(found) == {"begun", "bare", "whole"}
    assert found["begun"].startswith("no weight file yet\n") and "00001.safetensors" in found["begun"]
    assert found["bare"].startswith("no weight file yet\n") and "has no weight file" in found["bare"]
    shutil.copy(BUILTIN_MODEL, tmp_path / "bare" / "a.safetensors")
    assert paragraphs(tmp_path)["bare"].startswith("the built-in model")


def test_without_models_it_tells_of_the_built_in_one_and_where_others_are(tmp_path: Path) -> None:
    empty = told(tmp_path)
    assert empty.startswith(f"0 models, 0 image tokenizers in {tmp_path}\n\nNo model of your own yet.")
    assert "works without any file" in empty and "press R" in empty
    assert [name for name in (*REPOSITORIES, *FILES) if name not in empty] == []
    assert [address for address in COMPANIONS if address not in empty] == []
    assert "into the folder models/ar_image/Janus-Pro-1B" in empty
    shutil.copy(GOLDEN / "llamagen_vq_tiny.pt", tmp_path / "vq.pt")
    (tmp_path / "note.pt").write_text("hello")
    other = told(tmp_path)
    assert other.startswith("0 models, 1 image tokenizer, 1 other file in ") and "any file" in other
    shutil.copy(BUILTIN_MODEL, tmp_path / "small.safetensors")
    assert told(tmp_path).startswith("1 model, 1 image tokenizer, 1 other file in ")
    assert "any file" not in told(tmp_path)


def test_a_model_that_lacks_something_is_no_other_file(tmp_path: Path) -> None:
    for name in ("textless", "shardless", "begun", "unet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    shutil.copytree(GOLDEN / "janus_original_tiny", tmp_path / "textless", dirs_exist_ok=True)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "shardless" / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({"a": torch.ones(1)}, tmp_path / "shardless" / "model-00001-of-00002.safetensors")
    save_file({"unet.weight": torch.ones(2)}, tmp_path / "unet" / "model.safetensors")
    first = told(tmp_path).splitlines()[0]
    assert first.startswith("0 models, 0 image tokenizers, 3 models that lack something, 1 other file in ")
    assert "any file" not in told(tmp_path)


def test_no_weight_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(looking, "open_checkpoint", lambda path: opened.append(original(path)) or opened[-1])
    model = look(folder / "small.safetensors")
    assert not isinstance(model, str) and all(p.is_meta for p in model.transformer.parameters())
    assert opened[0].used and opened[0]._reading is None


original = looking.open_checkpoint


def test_an_image_tokenizer_within_the_model_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "janus"
    folder.mkdir()
    shutil.copy(GOLDEN / "janus_original_tiny" / "config.json", folder)
    weights = torch.load(GOLDEN / "janus_original_tiny" / "pytorch_model.bin")
    vq = torch.load(GOLDEN / "llamagen_vq_tiny.pt")["model"]
    vq["quantize.embedding.weight"] = torch.randn(len(weights["gen_embed.weight"]), 8)
    torch.save(weights | {f"gen_vision_model.{k}": v for k, v in vq.items()}, folder / "pytorch_model.bin")
    without_text = paragraphs(tmp_path)["janus"]
    assert "the text tokenizer of janus is missing" in without_text and "gen_vision" not in without_text
    special = {"<｜begin▁of▁sentence｜>": 0, "<｜▁pad▁｜>": 1, "<begin_of_image>": 2}
    write_tokenizer(folder / "tokenizer.json", {"red": 6}, special, 8)
    assert "image tokenizer: in its own file" in paragraphs(tmp_path)["janus"]
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "tokenizer.json").rename(tmp_path / "tokenizer.json.old")
    both = paragraphs(tmp_path)["janus"]
    assert "the text tokenizer of janus is missing" in both and "resolve/main/tokenizer.json" in both
    assert "The image tokenizer is missing too. It is part of the model's own weight files" in both
    (tmp_path / "tokenizer.json.old").rename(folder / "tokenizer.json")
    lacking = paragraphs(tmp_path)["janus"]
    assert "missing. It is part of the model's own weight files (gen_vision_model)" in lacking
    assert "huggingface.co/deepseek-ai/Janus-Pro-1B" in lacking


def test_an_image_tokenizer_that_lies_elsewhere_is_named_with_the_text_tokenizer() -> None:
    model, vq = (open_checkpoint(GOLDEN / f"llamagen_{name}_tiny.pt") for name in ("c2i", "vq"))
    said = text_source("Emu3", model)
    assert "emu3.tiktoken" in said and "also needs an image tokenizer, where you do not have it" in said
    assert "BAAI/Emu3-VisionTokenizer into the folder" in said
    assert "image tokenizer" not in text_source("Emu3", vq)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("<!doctype html><html>", "is a web page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        ("", "is empty"),
        ("{", "damaged or no tokenizer file"),
    ],
)
@pytest.mark.parametrize("place", ["janus", "tokenizer"])
def test_a_wrong_text_tokenizer_says_where_the_right_one_is(
    tmp_path: Path, content: str, fault: str, place: str
) -> None:
    shutil.copytree(GOLDEN / "janus_original_tiny", tmp_path / "janus")
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "tokenizer.json").write_text(content)
    said = paragraphs(tmp_path)["janus"]
    assert fault in said and said.count("resolve/main/tokenizer.json") == 1
