"""Which image tokenizer belongs to a model: what "auto" in the loader's widget finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from ..model_loaders.companions import PICTURES, companion
from ..model_loaders.errors import CheckpointError
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer

Peek = Callable[[Path], ImageTokenizer]  # reads headers only; CheckpointError or OSError where there is none


def find_tokenizer(
    model: ImageModel,
    path: Path,
    files: Mapping[str, Path],
    packaged: Mapping[str, Path],
    peek: Peek,
) -> Path | None:
    """Where the one tokenizer of the model's kind is; the first of these places that has one:

    the model's own file or folder (`path`), what lies below that, beside it, in the folders around it from
    the inside out (some repositories keep it in another branch), among all files, in the package; then
    beside it and anywhere within other models. Of several the one that is named as published for the family;
    a ValueError where that decides nothing. None where none fits. `files` are all choices, by names that
    begin with the folder below a root.
    """
    if fits(model, path, peek):
        return path
    name = PurePosixPath(next((name for name, file in files.items() if file == path), ""))
    others = {name: file for name, file in files.items() if file != path}
    beside = {name: file for name, file in others.items() if file.parent == path.parent}

    def below(folder: PurePosixPath) -> dict[str, Path]:
        return {n: file for n, file in others.items() if folder in PurePosixPath(n).parents}

    near = [below(name), beside, *map(below, name.parents)]  # the last of these are all files
    places = [(candidates, False) for candidates in (*near, packaged)]
    for candidates, within_model in (*places, (beside, True), (others, True)):
        fitting = {
            name: file
            for name, file in candidates.items()
            if (vq := fits(model, file, peek)) and vq.within_model == within_model
        }
        if len(fitting) > 1:
            fitting = as_published(model, fitting) or fitting
        if len(fitting) > 1:
            raise ValueError(
                f"several image tokenizers fit {model.name}: {', '.join(fitting)}. Choose one in the "
                "tokenizer widget."
            )
        if fitting:
            return next(iter(fitting.values()))
    return None


def as_published(model: ImageModel, files: Mapping[str, Path]) -> dict[str, Path]:
    """Those with the name under which the family's image tokenizer is published: LlamaGen's two, for classes
    and for text, differ in nothing else that can be seen."""
    published = companion(model.family, PICTURES)
    names = {PurePosixPath(file).name for file in published.files} if published else set()
    return {name: file for name, file in files.items() if file.name in names}


def choice_words(model: ImageModel, taken: Path, files: Mapping[str, Path], peek: Peek) -> str:
    """Which of the files was taken, and which others would fit as well."""
    others = [
        name
        for name, file in files.items()
        if file != taken and (vq := fits(model, file, peek)) and not vq.within_model
    ]
    name = next((name for name, file in files.items() if file == taken), taken.name)
    if not others:
        return f"image tokenizer: {name}"
    return f"image tokenizer: {name} (these fit too: {', '.join(others)})"


def fits(model: ImageModel, file: Path, peek: Peek) -> ImageTokenizer | None:
    try:
        vq = peek(file)
    except (CheckpointError, OSError):
        return None  # some other file, such as another model, or one that cannot be read
    return vq if belongs(vq, model) else None


def belongs(vq: ImageTokenizer, model: ImageModel) -> bool:
    return (vq.kind, vq.vocabulary) == (model.tokenizer_kind, model.vocabulary)


def described(kind: str, vocabulary: int) -> str:
    return f"{kind}, {vocabulary} codes"
