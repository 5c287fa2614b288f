"""What the measuring commands share: the package under its alias, the built-in model, prompts, tables."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]

if "jacobi_ar" not in sys.modules:
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [str(ROOT)]
    sys.modules["jacobi_ar"] = alias

from jacobi_ar.model_loaders.image_model import ImageModel  # noqa: E402
from jacobi_ar.model_loaders.image_tokenizer import ImageTokenizer  # noqa: E402
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model  # noqa: E402
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer  # noqa: E402

# 300 of the names that the built-in model was trained on, drawn at random, one a line.
PROMPTS = (Path(__file__).parent / "prompts.txt").read_text(encoding="utf-8").split("\n")[:-1]


def builtin_model(dtype: torch.dtype = torch.float32) -> ImageModel:
    """The model that ships in the package, on the CPU."""
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=dtype)


def builtin_tokenizer() -> ImageTokenizer:
    """The image tokenizer that ships in the package, on the CPU."""
    return load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu")


def machine() -> str:
    """What the figures were measured on, for captions."""
    system = f"{platform.system()} {platform.machine()}"
    return f"{system}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write_block(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- /name -->` in a Markdown file."""
    page = path.read_text(encoding="utf-8")
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    if opening not in page or closing not in page:
        raise SystemExit(f"{path.name} has no block {opening} … {closing} to write the table into")
    before, rest = page.split(opening, 1)
    after = rest.split(closing, 1)[1]
    path.write_text(f"{before}{opening}\n{text}\n{closing}{after}", encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
