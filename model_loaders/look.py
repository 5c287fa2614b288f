"""What a file or folder holds, known without loading it."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from .checkpoint import open_checkpoint
from .errors import CheckpointError, DependencyError
from .image_model import ImageModel
from .image_tokenizer import ImageTokenizer
from .load import family_of, load_opened
from .load_tokenizer import load_image_tokenizer


def look(path: str | os.PathLike[str]) -> ImageModel | ImageTokenizer | str:
    """The model or image tokenizer in `path`, its weights on the meta device, or one sentence that says why
    it would not load. Reads headers, configuration and the small tensors (a codebook), not the weights.
    """
    try:
        checkpoint = open_checkpoint(path)
        if family_of(checkpoint) is not None:
            return load_opened(checkpoint, device="meta", dtype=torch.bfloat16)
        return load_image_tokenizer(path, device="meta")
    except (CheckpointError, DependencyError) as error:
        return str(error)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror or error})"


def lacks_something(path: Path) -> bool:
    """Of something that does not load: whether it is a model all the same, by its tensors, or a folder of
    weights of which some are missing."""
    try:
        return family_of(open_checkpoint(path)) is not None
    except (CheckpointError, OSError):
        return path.is_dir()
