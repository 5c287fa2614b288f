"""Conversion to one file: bit for bit what loading the original gives, for each kind of original."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders import packing
from jacobi_ar.model_loaders.checkpoint import open_checkpoint
from jacobi_ar.model_loaders.convert import plan_conversion, write
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.float8 import float8_operations, from_float8
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from jacobi_ar.tests.tiny_tokenizer import write_tokenizer
from jacobi_ar.tests.toy_families import TOYS
from jacobi_ar.tools.convert import main
from safetensors import safe_open
from torch import Tensor

GOLDEN = Path(__file__).parent / "golden"
SPECIAL = {"<｜begin▁of▁sentence｜>": 100, "<｜▁pad▁｜>": 2, "<begin_of_image>": 101}


def janus(folder: Path) -> Path:
    """A model with text tokenizer, configuration and image tokenizer."""
    folder.mkdir()
    shutil.copy(GOLDEN / "janus_original_tiny" / "config.json", folder)
    weights = torch.load(GOLDEN / "janus_original_tiny" / "pytorch_model.bin")
    vq = torch.load(GOLDEN / "llamagen_vq_tiny.pt")["model"]
    vq["quantize.embedding.weight"] = torch.randn(len(weights["gen_embed.weight"]), 8)
    torch.save(weights | {f"gen_vision_model.{k}": v for k, v in vq.items()}, folder / "pytorch_model.bin")
    write_tokenizer(folder / "tokenizer.json", {"red": 6, "cat": 7}, SPECIAL, 512)
    return folder


def originals(tmp_path: Path) -> dict[str, tuple[Path, Path]]:
    """Kind -> (model, image tokenizer)."""
    return {
        "built-in": (BUILTIN_MODEL, BUILTIN_TOKENIZER),
        "LlamaGen c2i": (GOLDEN / "llamagen_c2i_tiny.pt", GOLDEN / "llamagen_vq_tiny.pt"),
        "LlamaGen t2i": (GOLDEN / "llamagen_t2i_tiny.pt", GOLDEN / "llamagen_vq_tiny.pt"),
        "Janus": (janus(tmp_path / "janus"),) * 2,
    }


KINDS = ["built-in", "LlamaGen c2i", "LlamaGen t2i", "Janus"]


def converted(model: Path, tokenizer: Path | None, target: Path, float8: bool = False) -> Path:
    for _ in write(plan_conversion(model, tokenizer, float8=float8), target):
        pass
    return target


def weights_of(path: Path, narrow: bool, dtype: torch.dtype = torch.bfloat16) -> dict[str, Tensor]:
    """Parameters as they compute: those in float8 with their scale."""
    operations = float8_operations(torch.nn) if narrow else torch.nn
    loaded = load_image_model(path, device="cpu", dtype=dtype, operations=operations)
    state = loaded.transformer.state_dict()
    for name in [name for name in state if name.endswith(".scale")]:
        weight = f"{name.removesuffix('scale')}weight"
        state[weight] = from_float8(state[weight], state.pop(name))
    return state


def assert_equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


@pytest.mark.parametrize("float8", [False, True], ids=["bfloat16", "float8"])
@pytest.mark.parametrize("kind", KINDS)
def test_loads_alone_and_is_bit_for_bit_what_the_original_gives(
    tmp_path: Path, kind: str, float8: bool
) -> None:
    model, tokenizer = originals(tmp_path)[kind]
    target = converted(model, tokenizer, tmp_path / "alone" / "a.safetensors", float8)
    assert [file.name for file in target.parent.iterdir()] == ["a.safetensors"]
    assert_equal(weights_of(target, float8), weights_of(model, float8))
    with safe_open(target, framework="pt") as file:  # the library takes it for what it is
        assert file.metadata()[packing.FAMILY] == kind
    was, now = (load_image_model(p, device="meta", dtype=torch.bfloat16) for p in (model, target))
    assert (was.name, was.grids, was.defaults) == (now.name, now.grids, now.defaults)
    if kind not in ("LlamaGen t2i", "LlamaGen c2i"):
        was_prompt, now_prompt = was.encode_prompt("red cat"), now.encode_prompt("red cat")
        assert was_prompt.notes == now_prompt.notes
        if kind == "Janus":
            rows = [m.transformer.prompt_ids([was_prompt], m.grids[0], True) for m in (was, now)]
            assert rows[0] == rows[1]

    before, after = (load_image_tokenizer(p, device="cpu") for p in (tokenizer, target))
    assert (before.kind, before.factor, before.can_encode) == (after.kind, after.factor, after.can_encode)
    assert torch.equal(before.codebook, after.codebook) and after.within_model
    assert_equal(before.module.state_dict(), after.module.state_dict())


TOY_NAMES = [name for toys in TOYS.values() for name in toys]


@pytest.mark.parametrize("name", TOY_NAMES)
def test_every_family_is_converted(tmp_path: Path, name: str) -> None:
    model = next(toys[name] for toys in TOYS.values() if name in toys)(tmp_path / "toy")
    target = converted(model, None, tmp_path / "alone" / "a.safetensors", float8=True)
    assert_equal(weights_of(target, True), weights_of(model, True))
    was, now = (load_image_model(p, device="cpu", dtype=torch.bfloat16) for p in (model, target))
    assert (was.name, was.family, was.grids, was.defaults) == (now.name, now.family, now.grids, now.defaults)
    if (model / "tokenizer.json").is_file():
        assert open_checkpoint(target).text("tokenizer.json") == (model / "tokenizer.json").read_text("utf-8")


def test_float8_again_and_back_are_exact(tmp_path: Path) -> None:
    narrow = converted(BUILTIN_MODEL, None, tmp_path / "narrow.safetensors", float8=True)
    again = converted(narrow, None, tmp_path / "again.safetensors", float8=True)
    wide = converted(narrow, None, tmp_path / "wide.safetensors")
    expected = weights_of(narrow, True)
    assert_equal(weights_of(again, True), expected)
    assert_equal(
        {n: t.float() for n, t in weights_of(wide, False).items()},
        {n: t.float() for n, t in expected.items()},
    )
    assert narrow.stat().st_size < 0.72 * wide.stat().st_size  # embeddings and the denoiser stay as they are
    assert open_checkpoint(narrow).in_float8 and not open_checkpoint(wide).in_float8


def test_a_converted_file_is_converted_with_all_that_it_holds(tmp_path: Path) -> None:
    first = converted(BUILTIN_MODEL, BUILTIN_TOKENIZER, tmp_path / "first.safetensors")
    second = converted(first, first, tmp_path / "second.safetensors")
    assert first.read_bytes() == second.read_bytes()


def test_what_is_not_needed_is_left_out(tmp_path: Path) -> None:
    weights = torch.load(GOLDEN / "llamagen_c2i_tiny.pt")
    torch.save(weights | {"optimizer": {"x": torch.ones(1000)}}, tmp_path / "a.pt")
    weights["model"]["freqs_cis"] = torch.ones(1000)
    plan = plan_conversion(tmp_path / "a.pt", None, float8=False)
    assert "freqs_cis" not in {name for piece in plan.pieces for name in piece.tensors}
    target = converted(tmp_path / "a.pt", None, tmp_path / "b.safetensors")
    with pytest.raises(CheckpointError, match="no image tokenizer|not an image tokenizer"):
        load_image_tokenizer(target, device="cpu")


def test_a_config_beside_a_converted_file_is_not_its_own(tmp_path: Path) -> None:
    target = converted(janus(tmp_path / "janus"), None, tmp_path / "out" / "a.safetensors")
    (target.parent / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (target.parent / "tokenizer.json").write_text("damaged")
    assert isinstance(load_image_model(target, device="meta", dtype=torch.bfloat16), ImageModel)


def test_nothing_is_overwritten_and_nothing_half_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.safetensors"
    plan = plan_conversion(BUILTIN_MODEL, None, float8=False)
    running = write(plan, target)
    done = [next(running), next(running)]
    assert 0 < done[0] < done[1] < plan.bytes and not target.exists()
    running.close()
    assert list(tmp_path.iterdir()) == []
    target.write_text("mine")
    with pytest.raises(CheckpointError, match="exists already"):
        next(write(plan, target))
    assert target.read_text() == "mine"
    assert list(write(plan, target, overwrite=True))[-1] == plan.bytes
    assert target.stat().st_size > plan.bytes
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10, 5, 5))
    with pytest.raises(CheckpointError, match="are free in"):
        next(write(plan, tmp_path / "b.safetensors"))


def test_what_does_not_load_is_not_converted(tmp_path: Path) -> None:
    whole = BUILTIN_MODEL.read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-100])
    with pytest.raises(CheckpointError, match="cut off"):
        plan_conversion(tmp_path / "cut.safetensors", None, float8=False)
    with pytest.raises(CheckpointError, match="not an image tokenizer"):
        plan_conversion(BUILTIN_MODEL, GOLDEN / "llamagen_c2i_tiny.pt", float8=False)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "a.safetensors"
    wanted = [str(BUILTIN_MODEL), str(target), "--dtype", "fp8", "--tokenizer", str(BUILTIN_TOKENIZER)]
    assert main(wanted) == 0
    assert open_checkpoint(target).in_float8 and load_image_tokenizer(target, device="cpu").within_model
    assert main(wanted) == 1 and "exists already" in capsys.readouterr().err
    assert main([*wanted, "--overwrite"]) == 0
    # The image tokenizer of the source goes along unasked.
    assert main([str(target), str(tmp_path / "b.safetensors"), "--dtype", "fp8"]) == 0
    assert (tmp_path / "b.safetensors").read_bytes() == target.read_bytes()
    assert "Warning" not in capsys.readouterr().out
    alone = tmp_path / "c2i.safetensors"
    assert main([str(GOLDEN / "llamagen_c2i_tiny.pt"), str(alone)]) == 0
    said = capsys.readouterr().out
    assert "without an image tokenizer" in said and "--tokenizer" in said and "vq_ds16_c2i.pt" in said
    assert main([str(tmp_path / "gone"), str(tmp_path / "c.safetensors")]) == 1
    assert "gone" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(target), str(tmp_path / "c.pt")])
