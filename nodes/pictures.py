"""Between ComfyUI's images and Pillow's."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor


def to_image(
    pixels: Tensor,  # [height, width, 3] float 0..1
) -> Image.Image:
    return Image.fromarray((pixels.float().cpu().clamp(0, 1) * 255).round().to(torch.uint8).numpy())


def to_pixels(image: Image.Image) -> Tensor:
    """[1, height, width, 3] float32 0..1."""
    return torch.from_numpy(np.asarray(image.convert("RGB")).astype(np.float32) / 255)[None]


def check_shape(name: str, image: Tensor) -> None:
    """ValueError where they are no pictures in red, green and blue, with or without opacity."""
    if image.ndim != 4 or image.shape[-1] not in (3, 4) or not image.numel():
        raise ValueError(f"{name} must be [pictures, height, width, 3 or 4], got {tuple(image.shape)}.")


def check_pictures(image: Tensor, wanted: int) -> None:
    """ValueError where they are no pictures, not as many as wanted, or hold NaN, which no file can."""
    check_shape("image", image)
    if len(image) != wanted:
        raise ValueError(
            f"image holds {len(image)} pictures and tokens hold {wanted}: connect the tokens that the "
            "pictures were decoded from."
        )
    if image.isnan().any():
        raise ValueError(
            "image holds values that are not numbers (NaN), so what was saved would not be the picture. Look "
            "for the node that made them: a model in float16 is the usual cause."
        )
