"""What a model without its text tokenizer lacks, told at once: nothing after that error looks any further."""

from __future__ import annotations

from .checkpoint import Checkpoint
from .companions import PICTURES, TEXT, Inside, companion, where_from
from .vq_files import recognises


def text_source(family: str, checkpoint: Checkpoint) -> str:
    """Where the text tokenizer is published and, unless it is in `checkpoint`, the image tokenizer; sentences
    without the last full stop. One that is published apart may lie anywhere, so it is not said to be missing.
    """
    said = where_from(family, TEXT)
    pictures = companion(family, PICTURES)
    if pictures is None or recognises(checkpoint.packed_tokenizer() or checkpoint):
        return said
    if isinstance(pictures, Inside):
        return f"{said}. The image tokenizer is missing too. {pictures.sentence()}"
    return f"{said}. It also needs an image tokenizer, where you do not have it yet. {pictures.sentence()}"
