"""Which image tokenizer belongs to a model: what "auto" in the loader's widget finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from ..model_loaders.errors import CheckpointError
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer


class HasTokenizer(Protocol):
    """A loaded tokenizer, or what its file's headers tell of it."""

    @property
    def tokenizer(self) -> ImageTokenizer: ...


def find_tokenizer(
    model: ImageModel,
    path: Path,
    files: Mapping[str, Path],
    packaged: Mapping[str, Path],
    peek: Callable[[Path], HasTokenizer],
) -> Path | None:
    """Where the one tokenizer of the model's kind is: in its own file or folder (`path`), else among the
    files beside it, else among all, else the packaged one; only then within other models. None where none
    fits, a ValueError where several do. `peek` reads headers only.
    """
    if fits(model, path, peek):
        return path
    others = {name: file for name, file in files.items() if file != path}
    beside = {name: file for name, file in others.items() if file.parent == path.parent}
    for candidates, within_model in (
        (beside, False),
        (others, False),
        (packaged, False),
        (beside, True),
        (others, True),
    ):
        fitting = {
            name: file
            for name, file in candidates.items()
            if (vq := fits(model, file, peek)) and vq.within_model == within_model
        }
        if len(fitting) > 1:
            raise ValueError(
                f"several image tokenizers fit {model.name}: {', '.join(fitting)}. Choose one in the "
                "tokenizer widget."
            )
        if fitting:
            return next(iter(fitting.values()))
    return None


def fits(model: ImageModel, file: Path, peek: Callable[[Path], HasTokenizer]) -> ImageTokenizer | None:
    try:
        vq = peek(file)
    except (CheckpointError, OSError):
        return None  # some other file, such as another model, or one that cannot be read
    return vq.tokenizer if belongs(vq, model) else None


def belongs(vq: HasTokenizer, model: ImageModel) -> bool:
    found = (vq.tokenizer.kind, vq.tokenizer.vocabulary)
    return found == (model.tokenizer_kind, model.vocabulary)


def described(kind: str, vocabulary: int) -> str:
    return f"{kind}, {vocabulary} codes"
