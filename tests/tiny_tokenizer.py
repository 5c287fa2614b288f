"""Small tokenizer files in the format of real ones: whole words, with special tokens at chosen ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers


def write_tokenizer(path: Path, words: Mapping[str, int], special: Mapping[str, int], size: int) -> Path:
    """Words are what white space divides; ids up to `size` that have no name get one. `special` tokens are
    known wherever they stand in a text."""
    named = words | special
    names = {number: f"unused{number}" for number in range(size)} | {i: name for name, i in named.items()}
    vocabulary = {name: number for number, name in names.items()}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=names[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(list(special))
    tokenizer.save(str(path))
    return path
