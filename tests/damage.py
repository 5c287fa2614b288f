"""Model files damaged on purpose, by seeded changes of good ones."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

WIDTHS = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "I64": 8,
    "I32": 4,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
ODD_VALUES: tuple[Any, ...] = (None, 0, -1, 1, 7, 0.5, 1e9, 10**30, True, "x", "", [], {}, [None], {"a": 1})
ODD_NAMES = (
    "../up.safetensors",
    "/etc/passwd",
    "C:\\x.safetensors",
    "",
    "..",
    "gone.safetensors",
    "a/b.bin",
    3,
    None,
)
LARGEST = 2**26  # bytes of a damaged file


class Damage:
    """Copies of a good file or folder, each damaged in another way, always the same for a seed."""

    def __init__(self, good: Path, scratch: Path, seed: int) -> None:
        self.good, self.scratch = good, scratch
        self.rng = random.Random(f"{good.name} {seed}")

    def next(self) -> tuple[Path, str]:
        """The damaged copy, and what was done to it."""
        target = self.scratch / self.good.name
        if self.good.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(self.good, target)
        else:
            shutil.copy(self.good, target)
        files = [target] if target.is_file() else sorted(file for file in target.iterdir() if file.is_file())
        weights = [file for file in files if file.suffix != ".json"]
        texts = [file for file in files if file.suffix == ".json"]
        kinds: list[tuple[Callable[[Path], str], list[Path]]] = [
            (self.bytes_of, files),
            (self.header_of, weights),
        ] * 2
        if texts:
            kinds += [(self.value_in, texts), (self.value_in, texts), (self.remove, files)]
        change, among = self.rng.choice(kinds)
        file = self.rng.choice(among)
        return target, f"{file.name}: {change(file)}"

    def remove(self, file: Path) -> str:
        file.unlink()
        return "removed"

    def bytes_of(self, file: Path) -> str:
        """Cut, flip bits, blank, repeat; mostly near an end, in the structure."""
        rng, data = self.rng, bytearray(file.read_bytes())
        at = min(rng.choice((rng.randrange(len(data)), int(rng.expovariate(1 / 200)))), len(data) - 1)
        at = at if rng.random() < 0.7 else len(data) - 1 - at
        kind = rng.choice(("cut", "flip", "flip", "blank", "repeat", "swap"))
        if kind == "cut":
            del data[at:]
        elif kind == "flip":
            for _ in range(rng.choice((1, 1, 4, 30))):
                data[max(0, min(len(data) - 1, at + rng.randrange(-30, 31)))] ^= 1 << rng.randrange(8)
        elif kind == "blank":
            data[at : at + 40] = bytes(len(data[at : at + 40]))
        elif kind == "repeat":
            data[at:at] = data[at : at + 64]
        else:
            data[at : at + 16] = data[at : at + 16][::-1]
        file.write_bytes(data)
        return f"{kind} at {at}"

    def header_of(self, file: Path) -> str:
        """Names, shapes, types and metadata of a safetensors file whose form stays good; of a torch file the
        same by saving it anew."""
        data = file.read_bytes()
        if data[:2] == b"PK":
            return self.torch_file(file)
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        done = [self.entry(header) for _ in range(self.rng.choice((1, 1, 2, 4)))]
        offset = 0
        for name, info in header.items():
            if name != "__metadata__":
                size = math.prod(info["shape"]) * WIDTHS.get(info["dtype"], 4)
                info["data_offsets"] = [offset, offset := offset + size]
        if offset > LARGEST:
            return self.bytes_of(file)
        text = json.dumps(header).encode()
        body = data[8 + length :][:offset].ljust(offset, b"\x3c")
        file.write_bytes(len(text).to_bytes(8, "little") + text + body)
        return ", ".join(done)

    def entry(self, header: dict[str, Any]) -> str:
        rng = self.rng
        names = [name for name in header if name != "__metadata__"]
        if not names:
            return "nothing left"
        name = rng.choice(names)
        info = header[name]
        kind = rng.choice(
            ("rename", "remove", "type", "shape", "side", "swap", "double", "scale", "metadata")
        )
        if kind == "rename":
            header[rng.choice(("x.", "", "module.")) + name + rng.choice(("", "2", ".weight"))] = header.pop(
                name
            )
        elif kind == "remove":
            del header[name]
        elif kind == "type":
            info["dtype"] = rng.choice([*WIDTHS, "F8_E8M0", "X"])
        elif kind == "shape":
            info["shape"] = rng.choice(
                ([], [0], [1], info["shape"][::-1], [*info["shape"], 1], [1, *info["shape"]])
            )
        elif kind == "side" and info["shape"]:
            info["shape"][rng.randrange(len(info["shape"]))] = rng.choice((0, 1, 2, 3, 7, 31, 32, 64))
        elif kind == "swap":
            other = rng.choice(names)
            header[name], header[other] = header[other], header[name]
        elif kind == "double":
            header[name.replace(".0.", f".{rng.randrange(1, 40)}.", 1) + rng.choice(("", "x"))] = dict(info)
        elif kind == "scale":
            info["dtype"] = "F8_E4M3"
            scale = name.removesuffix("weight") + rng.choice(("weight_scale", "scale_weight"))
            header[scale] = {"dtype": rng.choice(("F32", "I8")), "shape": rng.choice(([], [1], [3], [0]))}
        elif kind == "metadata" and header.get("__metadata__"):
            metadata = header["__metadata__"]
            key = rng.choice(list(metadata))
            metadata[key] = rng.choice(("", "{}", "[]", "null", '"x"', self.odd_json(metadata[key])))
        return f"{kind} {name}"

    def odd_json(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            return text[: len(text) // 2]
        self.change_value(value)
        return json.dumps(value)

    def torch_file(self, file: Path) -> str:
        content = torch.load(file, weights_only=True)
        inner = content.get("model", content.get("state_dict", content))
        name = self.rng.choice(list(inner))
        kind = self.rng.choice(("remove", "rename", "type", "cut", "text", "sparse", "twice"))
        value = inner.pop(name)
        if kind == "rename":
            inner[f"{name}x"] = value
        elif kind == "type":
            inner[name] = value.to(self.rng.choice((torch.int8, torch.complex64, torch.bool, torch.float16)))
        elif kind == "cut":
            inner[name] = value.flatten()[: self.rng.randrange(value.numel() + 1)]
        elif kind == "text":
            inner[name] = "a text"
        elif kind == "sparse":
            inner[name] = value.to_sparse() if value.ndim else value
        elif kind == "twice":
            inner |= {name: value, f"module.{name}": value}
        torch.save(content, file)
        return f"{kind} {name}"

    def value_in(self, file: Path) -> str:
        """A value somewhere in a JSON file becomes an odd one."""
        value = json.loads(file.read_text(encoding="utf-8"))
        where = self.change_value(value)
        file.write_text(json.dumps(value), encoding="utf-8")
        return where

    def change_value(self, value: Any) -> str:
        rng, path = self.rng, []
        while isinstance(value, dict | list) and value:
            key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
            path.append(str(key))
            inner = value[key]
            if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
                odd = ODD_NAMES if isinstance(inner, str) and rng.random() < 0.5 else ODD_VALUES
                value[key] = rng.choice(odd)
                if rng.random() < 0.2:
                    del value[key]
                break
            value = inner
        return "value " + " ".join(path)[-60:]


def sharded(weights: dict[str, torch.Tensor], folder: Path) -> None:
    """The tensors in two parts with their index, in place of model.safetensors."""
    names = sorted(weights)
    parts = {f"model-0000{n}-of-00002.safetensors": names[n - 1 :: 2] for n in (1, 2)}
    for file, inside in parts.items():
        save_file({name: weights[name] for name in inside}, folder / file)
    index = {"weight_map": {name: file for file, inside in parts.items() for name in inside}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink(missing_ok=True)
