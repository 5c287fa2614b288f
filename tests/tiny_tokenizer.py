"""Small tokenizer files in the format of real ones: whole words, with special tokens at chosen ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers


def write_tokenizer(path: Path, words: Mapping[str, int], special: Mapping[str, int], size: int) -> Path:
    """Words are what white space divides; ids up to `size` that have no name get one. `special` tokens are
    known wherever they stand in a text."""
    named = words | special
    taken = set(named.values())
    filler = {f"unused{i}": i for i in range(size) if i not in taken}
    tokenizer = Tokenizer(models.WordLevel(dict(named) | filler, unk_token="unused3"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(list(special))
    tokenizer.save(str(path))
    return path
