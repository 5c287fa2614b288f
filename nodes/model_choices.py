"""The names in the loader's widgets, and what lies behind them, seen from the files' headers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model_loaders.errors import CheckpointError
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer
from ..model_loaders.load_tokenizer import load_image_tokenizer
from ..model_loaders.look import look
from ..model_loaders.published import where_to_get
from . import host, model_files
from .model_files import Signature, folder_choices, pick, signature, text_encoder_in, weight_choices

# What was seen of a file, as long as the file stays the same.
_seen: dict[tuple[Path, Callable[[Path], Any]], tuple[Signature, Any]] = {}


@dataclass(frozen=True)
class Choices:
    """Shown name -> path, and the folders that were looked through."""

    files: dict[str, Path]
    folders: list[Path]

    def pick(self, field: str, choice: object) -> Path:
        return pick(field, choice, self.files, self.folders, where_to_get(choice))


def models() -> Choices:
    """Every file that may be a model: what a file is shows when it is loaded."""
    own, known = host.model_roots(), host.known_model_roots()
    others = [folder for folders in known.values() for folder in folders if folder.is_dir()]
    return Choices(weight_choices(own, known), own + others)


def tokenizers() -> Choices:
    """As `models`, and the image tokenizers among what lies in models/vae."""
    everything = models()
    among = weight_choices([], host.picture_tokenizer_roots())
    fitting = {name: path for name, path in among.items() if isinstance(seen(path), ImageTokenizer)}
    return Choices(everything.files | fitting, everything.folders)


def unfinished() -> dict[str, Path]:
    """Folders that a download has begun, by the names under which they will be shown."""
    return model_files.unfinished(host.model_roots(), host.known_model_roots())


def text_encoders() -> Choices:
    folders = host.text_encoder_roots()
    return Choices(folder_choices(folders), folders)


def text_encoder_for(model: object) -> Path | None:
    """The text encoder that "auto" takes for this model: of the width of its captions where there is one."""
    return text_encoder_in(text_encoders().files, getattr(model, "caption_width", None))


def seen(path: Path) -> ImageModel | ImageTokenizer | str:
    """As `look`, remembered while the files stay the same."""
    try:
        return _remembered(look, path)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"


def peek(path: Path) -> ImageTokenizer:
    """The image tokenizer in a file, be it part of a model, its weights on the meta device; CheckpointError
    or OSError where there is none."""
    found = _remembered(_peek, path)
    if isinstance(found, CheckpointError):
        raise found
    return found


def has_tokenizer(path: Path) -> bool:
    try:
        return bool(peek(path))
    except (CheckpointError, OSError):
        return False


def _peek(path: Path) -> ImageTokenizer | CheckpointError:
    try:
        return load_image_tokenizer(path, device="meta")
    except CheckpointError as error:
        return error.with_traceback(None)


def _remembered(read: Callable[[Path], Any], path: Path) -> Any:
    now = signature(path)
    known = _seen.get((path, read))
    if known is None or known[0] != now:
        known = _seen[path, read] = (now, read(path))
    return known[1]
