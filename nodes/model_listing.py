"""The models that a person has, as text: what each file is, how large, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..model_loaders.companions import ENCODER, PICTURES, where_from
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer
from ..model_loaders.look import lacks_something
from ..model_loaders.published import everything
from .sizes import counted, shown_bytes, shown_count
from .tokenizer_search import Peek, choice_words, described, find_tokenizer

Encoder = Callable[[ImageModel], Path | None]
Look = Callable[[Path], ImageModel | ImageTokenizer | str]
BUILT_IN = (
    "No model of your own yet. The built-in one (emoji and flags) works without any file: it is what Load AR "
    "Image Model begins with.\n\nOthers can be downloaded; afterwards press R. Most have a template that "
    "says how large they are, and docs/models.md tells of all."
)


def listing(
    files: Mapping[str, Path],
    folders: list[Path],
    packaged: Mapping[str, Path],
    encoder: Encoder,
    look: Look,
    peek: Peek,
    unfinished: Mapping[str, Path],
) -> str:
    """A paragraph for each file: models first, then image tokenizers, then what loads as neither.

    files: shown name -> path. packaged: image tokenizers of this package, which fit the built-in model.
    encoder: the text encoder that a model gets. look: what a path holds, or why it does not load. peek:
        the image tokenizer in a path, be it part of a model. unfinished: folders without a weight file.
    """
    found = {name: look(path) for name, path in files.items()}
    models = {name: it for name, it in found.items() if isinstance(it, ImageModel)}
    tokenizers = {name: it for name, it in found.items() if isinstance(it, ImageTokenizer)}
    faults = {name: it for name, it in found.items() if isinstance(it, str)}
    lacking = [name for name in faults if lacks_something(files[name])]
    parts = [
        headline(len(models), len(tokenizers), len(lacking) + len(unfinished), len(faults) - len(lacking))
    ]
    parts[0] += f" in {', '.join(str(folder) for folder in folders)}"
    for name, model in models.items():
        lines = [f"{name}: {model.name}", size_line(model.transformer, files[name])]
        lines += needs(model, files[name], files, packaged, encoder, peek)
        parts.append("\n   ".join(lines))
    for name, vq in tokenizers.items():
        kind = f"image tokenizer ({described(vq.kind, vq.vocabulary)})"
        parts.append(f"{name}: {kind}\n   {size_line(vq.module, files[name])}")
    parts += [f"{name}: does not load\n   {fault}" for name, fault in faults.items()]
    parts += [f"{name}: no weight file yet\n   {look(path)}" for name, path in unfinished.items()]
    if not models and not lacking and not unfinished:
        parts += [BUILT_IN, *("\n   ".join([f"{name}:", *todo]) for name, todo in everything().items())]
    return "\n\n".join(parts)


def headline(models: int, tokenizers: int, lacking: int, others: int) -> str:
    counts = [counted(models, "model"), counted(tokenizers, "image tokenizer")]
    if lacking:
        counts.append(counted(lacking, "model that lacks something", "models that lack something"))
    if others:
        counts.append(counted(others, "other file"))
    return ", ".join(counts)


def size_line(module: Any, path: Path) -> str:
    parameters = sum(p.numel() for p in module.parameters())
    return f"{shown_count(parameters)} parameters, {shown_bytes(size_on_disk(path))} on disk"


def needs(
    model: ImageModel,
    path: Path,
    files: Mapping[str, Path],
    packaged: Mapping[str, Path],
    encoder: Encoder,
    peek: Peek,
) -> list[str]:
    """Lines on what the model takes besides its own weights."""
    lines = list(filter(None, [model.grid_words()]))
    names = {place: name for name, place in (files | packaged).items()} | {path: "in its own file"}
    try:
        vq = find_tokenizer(model, path, files, packaged, peek)
    except ValueError as error:
        lines.append(f"image tokenizer: {error}")
    else:
        source = where_from(model.family, PICTURES) or "Put the VQ file that came with the model beside it"
        if vq in files.values() and vq != path:
            lines.append(choice_words(model, vq, files, peek))
        else:
            lines.append(f"image tokenizer: {names[vq] if vq else f'missing. {source}.'}")
    source = where_from(model.family, ENCODER)
    if source:
        taken = encoder(model)
        lines.append(f"text encoder: {taken.name if taken else f'missing. {source}.'}")
    return lines


def size_on_disk(path: Path) -> int:
    files = [path] if path.is_file() else [entry for entry in path.iterdir() if entry.is_file()]
    return sum(file.stat().st_size for file in files)
