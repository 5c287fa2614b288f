"""Token grids as files: safetensors, with all that is needed to decode them and to make them again.

One tensor "tokens" (int32 [pictures, rows, columns], -1 where a cell is open) and a header of texts:
`format`, `format_version`, `package_version`, the tokenizer's `tokenizer_kind`, `tokenizer_vocabulary` and
`tokenizer_codebook` (see `tokenizer_identity`), and `pictures`, a JSON list with the facts of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from .folders import walk
from .package_version import package_version
from .picture_facts import PictureFacts
from .tokenizer_identity import TokenizerIdentity
from .values import TokenGridValue

SUFFIX = ".safetensors"
FORMAT, VERSION = "jacobi-ar token grid", 1
MOST_HEADER = 1 << 24  # bytes; a longer header is some model's
MOST_CELLS = 1 << 24


def to_bytes(tokens: TokenGridValue) -> bytes:
    """The content of a file."""
    identity = tokens.tokenizer
    header = {
        "format": FORMAT,
        "format_version": str(VERSION),
        "package_version": package_version(),
        "tokenizer_kind": identity.kind,
        "tokenizer_vocabulary": str(identity.vocabulary),
        "tokenizer_codebook": identity.codebook,
        "pictures": json.dumps([facts.as_json() for facts in tokens.facts]),
    }
    return safetensors.torch.save({"tokens": tokens.tokens.to(torch.int32).contiguous()}, header)


def read_tokens(path: Path) -> TokenGridValue:
    """The tokens of a file; ValueError that names it where it holds none, damaged ones, or a newer format."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            check_format(path, header)
            tokens = file.get_tensor("tokens")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(
            f"{path.name} could not be read: {error}. It is no token grid, or it is damaged; save it anew "
            "with Save Token Grid, or copy it again."
        ) from error
    try:
        identity = TokenizerIdentity(
            header["tokenizer_kind"], int(header["tokenizer_vocabulary"]), header["tokenizer_codebook"]
        )
        facts = tuple(PictureFacts.from_json(found) for found in json.loads(header["pictures"]))
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"the header of {path.name} is damaged ({type(error).__name__}: {error}). Save it anew with "
            "Save Token Grid."
        ) from error
    check_tokens(path, tokens, identity.vocabulary)
    if len(facts) != len(tokens):
        raise ValueError(
            f"{path.name} is damaged: it tells of {len(facts)} pictures and holds {len(tokens)}."
        )
    return TokenGridValue(tokens.long(), identity, facts)


def check_format(path: Path, header: Mapping[str, str]) -> None:
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path.name} is no token grid of this package: its header does not say so. Choose a file that "
            "Save Token Grid wrote."
        )
    if header.get("format_version") != str(VERSION):
        raise ValueError(
            f"{path.name} has version {header.get('format_version')} of the format, and this package reads "
            f"version {VERSION}. It was written by version {header.get('package_version')} of Jacobi AR "
            "Image: update to that."
        )


def check_tokens(path: Path, tokens: Tensor, vocabulary: int) -> None:
    shape = tuple(tokens.shape)
    if tokens.dtype != torch.int32 or tokens.ndim != 3 or not 0 < tokens.numel() <= MOST_CELLS:
        raise ValueError(
            f"{path.name} is damaged: tokens must be int32 [pictures, rows, columns] and not empty, got "
            f"{tokens.dtype} {list(shape)}."
        )
    lowest, highest = int(tokens.min()), int(tokens.max())
    if lowest < -1 or highest >= vocabulary:
        raise ValueError(
            f"{path.name} is damaged: it holds the token {highest if highest >= vocabulary else lowest}, "
            f"and its tokenizer has 0 to {vocabulary - 1}."
        )


def is_token_file(path: Path) -> bool:
    """By the header alone; False where it cannot be read."""
    if not path.is_file():  # opening a pipe would wait for whoever writes to it
        return False
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > MOST_HEADER:
                return False
            header = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError):
        return False
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return isinstance(metadata, dict) and metadata.get("format") == FORMAT


def token_choices(roots: Mapping[str, Path]) -> dict[str, Path]:
    """Shown name -> path of every token grid under these roots, as in `candidates`."""
    return {name: path for name, path in candidates(roots).items() if is_token_file(path)}


def candidates(roots: Mapping[str, Path]) -> dict[str, Path]:
    """Shown name -> path of every file that may be a token grid, by its suffix. roots: what is written behind
    a name -> folder."""
    found: dict[str, Path] = {}
    for mark, root in roots.items():
        for folder, files in walk(root):
            for name in sorted(files):
                path = folder / name
                if name.lower().endswith(SUFFIX):
                    found[path.relative_to(root).as_posix() + mark] = path
    return found
