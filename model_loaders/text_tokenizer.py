"""The text tokenizer of a language model: a tokenizer.json read by the `tokenizers` package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .checkpoint import Checkpoint
from .errors import CheckpointError, DependencyError
from .weight_file import refuse_impostor


class TextTokenizer:
    """Text to ids, without any token that the text does not hold: each family adds its own by name."""

    def __init__(self, text: str, rows: int, description: str) -> None:
        """`text` is the content of tokenizer.json, `description` says in errors where it is from. More tokens
        than the `rows` of the model's table of embeddings belong to another model."""
        self.text = text
        self.description = description
        self._tokenizer = read_tokenizer(text, description)
        size = self._tokenizer.get_vocab_size()
        if size > rows:
            raise CheckpointError(
                f"{description} does not belong to this model: it has {size} tokens, the model {rows}"
            )

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def __contains__(self, token: str) -> bool:
        return self._tokenizer.token_to_id(token) is not None

    def id_of(self, token: str) -> int:
        """Id of a token by its name, as a family's special tokens are looked up."""
        number = self._tokenizer.token_to_id(token)
        if number is None:
            raise CheckpointError(
                f"{self.description} does not belong to this model: it has no token {token}"
            )
        return number

    def codes(self, spell: Callable[[int], str]) -> tuple[int, int]:
        """Ids of the tokens that stand for image codes: the first, and one past the last.

        `spell` gives the name of a code's token. Every id is looked up, for they must lie in order.
        """
        first, count = self.id_of(spell(0)), 1
        while spell(count) in self:
            if self.id_of(spell(count)) != first + count:
                raise CheckpointError(
                    f"{self.description}: the image tokens do not lie in the order of their codes"
                )
            count += 1
        return first, first + count


def read_tokenizer(text: str, description: str) -> Any:
    """A `tokenizers.Tokenizer` that neither pads nor cuts."""
    try:
        from tokenizers import Tokenizer
    except (ImportError, OSError) as error:
        raise DependencyError(
            f"{description} is read by the Python package tokenizers, which does not import ({error}). "
            f'Install it: "{sys.executable}" -m pip install --upgrade tokenizers'
        ) from error
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointError(f"{description} is damaged or no tokenizer file ({error})") from error
    # The file may ask for its own.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def read_text(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read ({error})") from error
    refuse_impostor(file, text[:512].encode())
    return text


def find_text_tokenizer(
    checkpoint: Checkpoint, names: Sequence[str], rows: int, source: str
) -> TextTokenizer:
    """The text tokenizer that belongs to the weights: packed with them, or the first file of these `names`
    that `find_tokenizer_file` finds. `rows` is the size of the model's table of embeddings."""
    try:
        packed = next((text for text in map(checkpoint.text, names) if text is not None), None)
        if packed is not None:
            return TextTokenizer(packed, rows, f"the text tokenizer of {checkpoint.path.name}")
        file = find_tokenizer_file(checkpoint.path, names, source)
        tokenizer = TextTokenizer(read_text(file), rows, str(file))
    except CheckpointError as error:  # a wrong file is mended as a missing one is
        raise error if source in str(error) else CheckpointError(f"{error}. {source}") from error
    checkpoint.used_texts[names[0]] = tokenizer.text
    return tokenizer


def find_tokenizer_file(weights: Path, names: Sequence[str], source: str) -> Path:
    """The tokenizer file that belongs to `weights` (a file or folder).

    Looked for beside the weights and in a folder `tokenizer` there, then the same one and two levels up, as
    far as the official repositories put it. `source` is the sentence of an error that says where to get it.
    """
    folder = (weights if weights.is_dir() else weights.parent).absolute()
    for place in (folder, *folder.parents[:2]):
        for inner in (place, place / "tokenizer"):
            for name in names:
                if (inner / name).is_file():
                    return inner / name
    listed = " or ".join(names)
    raise CheckpointError(
        f"the text tokenizer of {weights.name} is missing: there is no {listed} in {folder}. {source}"
    )
