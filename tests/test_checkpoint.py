"""Reading checkpoints: every kind of file and folder that is right, and every kind of damage.

Damage is made by seeded changes of good files. Whatever it is, the file either opens or is refused with a
sentence: any other exception is a failure of this package.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.checkpoint import Checkpoint, open_checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from jacobi_ar.model_loaders.strict import assign
from safetensors.torch import save_file
from torch import Tensor, nn

WEIGHTS = {
    "layer.weight": torch.arange(12, dtype=torch.float32).view(3, 4),
    "layer.bias": torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16),
    "count": torch.tensor(7),
}


def same(checkpoint: Checkpoint, weights: dict[str, Tensor] = WEIGHTS) -> bool:
    for name, info in checkpoint.tensors.items():
        assert (info.shape, info.dtype) == (tuple(weights[name].shape), weights[name].dtype)
    return set(checkpoint.tensors) == set(weights) and all(
        torch.equal(checkpoint.read(name), weights[name]) for name in weights
    )


def write_shards(folder: Path, suffix: str = "safetensors") -> Path:
    """Two parts and their index."""
    stem = "model" if suffix == "safetensors" else "pytorch_model"
    names = [f"{stem}-0000{n}-of-00002.{suffix}" for n in (1, 2)]
    place = {"layer.weight": names[0], "layer.bias": names[1], "count": names[1]}
    for name in names:
        part = {k: WEIGHTS[k] for k, file in place.items() if file == name}
        save_file(part, folder / name) if suffix == "safetensors" else torch.save(part, folder / name)
    (folder / f"{stem}.{suffix}.index.json").write_text(json.dumps({"weight_map": place}))
    return folder


def refused(path: Path, *parts: str) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- files that are right -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "model", "module", "state_dict", "ema"])
@pytest.mark.parametrize("old", [False, True], ids=["zip", "before zip"])
def test_torch_files(tmp_path: Path, key: str | None, old: bool) -> None:
    content = WEIGHTS if key is None else {"steps": 3, key: WEIGHTS}
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=not old)
    assert same(open_checkpoint(tmp_path / "a.pt"))


def test_the_first_container_wins(tmp_path: Path) -> None:
    other = {name: torch.zeros_like(value) for name, value in WEIGHTS.items()}
    torch.save({"ema": other, "optimizer": {"state": other}, "model": WEIGHTS}, tmp_path / "a.pt")
    assert same(open_checkpoint(tmp_path / "a.pt"))


def test_wrapper_prefixes_are_stripped(tmp_path: Path) -> None:
    wrapped = {f"module._orig_mod.{name}": value for name, value in WEIGHTS.items()}
    torch.save(wrapped, tmp_path / "a.pt")
    assert same(open_checkpoint(tmp_path / "a.pt"))
    torch.save(wrapped | {"count": torch.tensor(1)}, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "count is there twice")


def test_training_arguments_beside_the_weights(tmp_path: Path) -> None:
    torch.save({"model": WEIGHTS, "args": argparse.Namespace(lr=1e-4)}, tmp_path / "a.pt")
    before = set(torch.serialization.get_safe_globals())
    assert same(open_checkpoint(tmp_path / "a.pt"))
    assert set(torch.serialization.get_safe_globals()) == before
    with torch.serialization.safe_globals([argparse.Namespace]):  # the host's own permission outlives ours
        assert same(open_checkpoint(tmp_path / "a.pt"))
        assert argparse.Namespace in torch.serialization.get_safe_globals()


def test_safetensors_with_metadata_and_config(tmp_path: Path) -> None:
    save_file(WEIGHTS, tmp_path / "a.safetensors", {"family": "x"})
    assert open_checkpoint(tmp_path / "a.safetensors").config is None
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    for path in (tmp_path / "a.safetensors", tmp_path):
        checkpoint = open_checkpoint(path)
        assert same(checkpoint)
        assert checkpoint.metadata["family"] == "x" and checkpoint.config == {"model_type": "t5"}


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_shards(tmp_path: Path, suffix: str) -> None:
    write_shards(tmp_path, suffix)
    index = next(tmp_path.glob("*.index.json"))
    part = next(tmp_path.glob(f"*-00002-of-*.{suffix}"))
    for path in (tmp_path, index, part):
        assert same(open_checkpoint(path))


def test_a_linked_shard_is_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    folder = tmp_path / "snapshot"
    folder.mkdir()
    part = next(write_shards(folder).glob("*-00001-*"))
    part.rename(tmp_path / "blobs" / "abc")
    try:
        part.symlink_to(tmp_path / "blobs" / "abc")
    except OSError:
        pytest.skip("no links on this system")
    assert same(open_checkpoint(folder))


def test_tensors_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = {name: torch.randn(5) for name in ("z", "a", "m", "b")}
    torch.save(weights, tmp_path / "a.pt")
    assert list(open_checkpoint(tmp_path / "a.pt").tensors) == ["z", "a", "m", "b"]
    header = {
        n: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, n in enumerate("zam")
    }
    text = json.dumps(header).encode()
    (tmp_path / "b.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(12))
    assert list(open_checkpoint(tmp_path / "b.safetensors").tensors) == ["z", "a", "m"]


# --- files that are wrong -----------------------------------------------------------------------------------


class Harmful:
    """Unpickling this would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("form", ["zip", "before zip", "pickle"])
def test_code_in_a_pickle_is_named_and_not_executed(tmp_path: Path, form: str) -> None:
    content = {"model": WEIGHTS, "extra": Harmful(tmp_path / "made")}
    if form == "pickle":
        (tmp_path / "a.pt").write_bytes(pickle.dumps(content["extra"], protocol=2))
    else:
        torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=form == "zip")
    message = refused(tmp_path / "a.pt", "a.pt")
    assert not (tmp_path / "made").exists()
    if form != "pickle":  # a bare pickle is already no torch file
        assert "mkdir" in message and "Nothing was executed" in message


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["empty"]),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", ["Git LFS pointer"]),
        (b"  <!DOCTYPE html><html></html>", ["web page"]),
        (b"GGUF\x03\0\0\0" + bytes(64), ["no safetensors and no torch file"]),
        ((1 << 40).to_bytes(8, "little") + b'{"a": 1}', ["cut off", "1,099,511,627,776"]),
    ],
)
def test_what_is_no_weight_file(tmp_path: Path, content: bytes, parts: list[str]) -> None:
    for name in ("a.safetensors", "a.pt"):
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, name, *parts)


def test_a_cut_torch_file_gives_no_half_sentence(tmp_path: Path) -> None:
    torch.save({"model": {"a": torch.ones(4096), "b": torch.ones(4096)}}, tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    for part in (300, 5000, len(whole) // 2, len(whole) - 40):
        (tmp_path / "a.pt").write_bytes(whole[:part])
        message = refused(tmp_path / "a.pt", "a.pt is cut off or damaged: download it again")
        assert message.endswith(")") and "If you" not in message and ". " not in message


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("failed: miniz error. If you are seeing this error, there is a high chance", "failed: miniz error"),
        ("one line\nand the next", "one line"),
        ("v1.5 is unknown.", "v1.5 is unknown"),
        ("x" * 400, "RuntimeError"),
        ("", "RuntimeError"),
    ],
)
def test_of_what_torch_says_one_whole_sentence_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str, reason: str
) -> None:
    def load(*_: object, **__: object) -> None:
        raise RuntimeError(raised)

    torch.save(WEIGHTS, tmp_path / "a.pt")
    monkeypatch.setattr(torch, "load", load)
    assert refused(tmp_path / "a.pt", "a.pt").endswith(f"download it again ({reason})")


def test_no_weights_inside(tmp_path: Path) -> None:
    for content, found in (
        ({"epoch": 3}, "epoch"),
        ([1], "a list"),
        ({}, "nothing"),
        (torch.ones(2), "a Tensor"),
    ):
        torch.save(content, tmp_path / "a.pt")
        refused(tmp_path / "a.pt", "no weights", found)
    torch.save({"model": {"w": torch.ones(2, 2).to_sparse()}}, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "w is not a plain tensor")
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(tmp_path / "a.pt", "a.pt")


def test_types_that_are_not_supported(tmp_path: Path) -> None:
    text = json.dumps({"w": {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    refused(tmp_path / "a.safetensors", "w is stored as F8_E8M0")


def test_folders_and_missing_things(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.pt", "no such file or folder")
    refused(tmp_path, "no weight file")
    for name in ("a.pt", "b.safetensors"):
        (tmp_path / name).write_bytes(b"")
    refused(tmp_path, "several weight files (a.pt, b.safetensors)")


def test_parts_of_a_model(tmp_path: Path) -> None:
    write_shards(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    good = index.read_text()
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]

    index.unlink()
    refused(tmp_path / names[0], "need their index file", index.name)
    index.write_text(good.replace("layer.bias", "layer.other"))
    refused(tmp_path, "layer.other in " + names[1])
    for wrong in ("[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 3}}', "not json", "<html></html>"):
        index.write_text(wrong)
        refused(tmp_path, index.name)
    for outside in (
        "../x.safetensors",
        "/etc/passwd",
        "..\\\\x.safetensors",
        "C:\\\\x.safetensors",
        "..",
        "",
    ):
        index.write_text(good.replace(names[1], outside))
        refused(tmp_path, "outside its own folder")
    index.write_text(good)
    (tmp_path / names[0]).write_bytes(b"damaged too")  # not looked at before all parts are there
    (tmp_path / names[1]).unlink()
    refused(tmp_path, "1 of 2 weight files are missing", names[1])


def test_a_damaged_config_is_named(tmp_path: Path) -> None:
    save_file(WEIGHTS, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": ')
    refused(tmp_path, "config.json is damaged")


# --- random damage ------------------------------------------------------------------------------------------


def damage(data: bytes, rng: random.Random, header: int) -> bytes:
    """Cut, flip bits, blank, reverse or repeat pieces; half of the time near an end, in the structure."""
    out = bytearray(data)
    reach = min(len(out), header) if rng.random() < 0.5 else len(out)
    kind = rng.choice(("cut", "flip", "flip", "zero", "swap", "extend"))
    at = rng.randrange(reach) if rng.random() < 0.5 else len(out) - 1 - rng.randrange(reach)
    if kind == "cut":
        return bytes(out[:at])
    if kind == "extend":
        return bytes(out + out[at : at + 40])
    if kind == "flip":
        for _ in range(rng.choice((1, 1, 3, 20))):
            place = min(len(out) - 1, max(0, at + rng.randrange(-30, 31)))
            out[place] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        out[at : at + 16] = bytes(len(out[at : at + 16]))
    else:
        out[at : at + 16] = out[at : at + 16][::-1]
    return bytes(out)


def survives(path: Path) -> bool:
    """Opens and reads everything, or is refused; whatever else is raised fails the test."""
    try:
        checkpoint = open_checkpoint(path)
        for name in checkpoint.tensors:
            checkpoint.read(name).clone()
    except CheckpointError as error:
        assert path.name in str(error)
        return False
    return True


@pytest.mark.filterwarnings("ignore")  # torch warns of odd protocols and types on its way
@pytest.mark.parametrize("form", ["safetensors", "zip", "before zip"])
def test_random_damage_is_refused_or_harmless(tmp_path: Path, form: str) -> None:
    good = tmp_path / "good"
    if form == "safetensors":
        save_file(WEIGHTS, good, {"family": "x"})
    else:
        content = {"model": WEIGHTS, "args": argparse.Namespace(lr=1e-4)}
        torch.save(content, good, _use_new_zipfile_serialization=form == "zip")
    data = good.read_bytes()
    rng = random.Random(5)
    opened = 0
    for number in range(400):
        path = tmp_path / f"damaged{number}"
        path.write_bytes(damage(data, rng, 400))
        opened += survives(path)
        path.unlink()
    assert opened < 300  # most damage is seen; a flipped bit of a weight cannot be


def test_random_damage_to_a_whole_tokenizer(tmp_path: Path) -> None:
    """Names, shapes and metadata that changed under the header's own checks."""
    data = BUILTIN_TOKENIZER.read_bytes()
    header = int.from_bytes(data[:8], "little")
    rng = random.Random(6)
    path = tmp_path / "vq.safetensors"
    refusals = 0
    for _ in range(60):
        out = bytearray(data)
        out[8 + rng.randrange(header)] ^= 1 << rng.randrange(8)
        path.write_bytes(out)
        try:
            load_image_tokenizer(path, device="cpu").decode(torch.zeros(1, 2, 2, dtype=torch.int64))
        except CheckpointError:
            refusals += 1
    assert refusals > 40


# --- strict loading -----------------------------------------------------------------------------------------


def meta_linear() -> nn.Module:
    with torch.device("meta"):
        return nn.Sequential(nn.Linear(4, 3))


def test_assign_casts_stacks_and_copies(tmp_path: Path) -> None:
    weight = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    parts = {"a": weight[:1].clone(), "b": weight[1:].clone(), "bias": torch.ones(3, dtype=torch.float16)}
    save_file(parts, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    names = {"0.weight": ("a", "b"), "0.bias": "bias"}
    for dtype in (torch.float32, torch.float16):
        module = meta_linear()
        assign(module, checkpoint, names, device="cpu", dtype=dtype, keep_float32=lambda n: n == "0.bias")
        assert torch.equal(module[0].weight, weight.to(dtype)) and module[0].bias.dtype == torch.float32
        assert not any(p.requires_grad for p in module.parameters())
    before = module[0].weight.clone()
    (tmp_path / "a.safetensors").unlink()
    assert torch.equal(module[0].weight, before)


def test_assign_reports_everything_before_it_reads(tmp_path: Path) -> None:
    save_file(
        {"0.weight": torch.ones(4, 3), "x": torch.ones(1), "y": torch.ones(1)}, tmp_path / "a.safetensors"
    )
    module = meta_linear()
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError) as caught:
        assign(module, checkpoint, device="cpu", dtype=torch.float32, ignore=lambda name: name == "y")
    assert str(caught.value) == (
        "a.safetensors does not fit the model that it looks like: 1 tensors are missing: 0.bias; "
        "1 tensors are not known: x; 1 tensors have another shape: 0.weight is (4, 3), expected (3, 4)"
    )
    assert all(p.is_meta for p in module.parameters())
