"""What can go wrong while decoding, in sentences for the person at the widget."""

from __future__ import annotations


class DecodingError(ValueError):
    """A setting that cannot be decoded with, or a model that stopped giving usable numbers."""


class NonFiniteLogits(DecodingError):
    """The model's logits became NaN or infinite."""

    def __init__(self, forward: int, images: list[int], filled: int, cells: int) -> None:
        super().__init__(
            f"the model gave NaN or infinite logits in forward {forward}, for image "
            f"{', '.join(map(str, images))} of the batch, after {filled} of {cells} tokens. "
            "Load the model in float32 or bfloat16 (float16 overflows in some models); if it still "
            "happens, the checkpoint is damaged: download it again."
        )
