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
