"""Which image tokenizer belongs to a model: what "auto" in the loader's widget finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..model_loaders.errors import CheckpointError
from ..model_loaders.image_model import ImageModel
from .values import TokenizerValue

Load = Callable[[Path], TokenizerValue]


def find_tokenizer(
    model: ImageModel,
    path: Path,
    files: Mapping[str, Path],
    packaged: Mapping[str, Path],
    load: Load,
) -> TokenizerValue | None:
    """The one tokenizer of the model's kind: in the model's own files (`path`), as Janus has it, else among
    the files beside it, else among all, else the packaged one. None where none fits, a ValueError where
    several do.
    """
    own = {model.name: path}
    others = {name: file for name, file in files.items() if file != path}
    beside = {name: file for name, file in others.items() if file.parent == path.parent}
    for candidates in (own, beside, others, packaged):
        loaded = {name: fits(model, file, load) for name, file in candidates.items()}
        fitting = {name: vq for name, vq in loaded.items() if vq is not None}
        if len(fitting) > 1:
            raise ValueError(
                f"several image tokenizers fit {model.name}: {', '.join(fitting)}. Choose one in the "
                "tokenizer widget."
            )
        if fitting:
            return next(iter(fitting.values()))
    return None


def fits(model: ImageModel, file: Path, load: Load) -> TokenizerValue | None:
    try:
        vq = load(file)
    except (CheckpointError, OSError):
        return None  # some other file, such as another model, or one that cannot be read
    return vq if belongs(vq, model) else None


def belongs(vq: TokenizerValue, model: ImageModel) -> bool:
    found = (vq.tokenizer.kind, vq.tokenizer.vocabulary)
    return found == (model.tokenizer_kind, model.vocabulary)


def described(kind: str, vocabulary: int) -> str:
    return f"{kind}, {vocabulary} codes"
