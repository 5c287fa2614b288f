"""From the host's bookkeeping to the model's device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def upload(array: np.ndarray, device: torch.device) -> Tensor:
    """An array on the device, without waiting for what the device is computing.

    CUDA stages pageable memory before the call returns, so the array may go; other devices do not promise
    that.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.to(device, non_blocking=device.type == "cuda")
