"""The families of image models, told apart by what is in their files."""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch

from ..checkpoint import Checkpoint
from ..image_model import ImageModel
from . import builtin, chameleon, emu3, janus, llamagen, lumina2


class Family(Protocol):
    """What each family's module offers."""

    def recognises(self, checkpoint: Checkpoint) -> bool: ...

    def load(
        self,
        checkpoint: Checkpoint,
        *,
        device: torch.device,
        dtype: torch.dtype,
        operations: Any,
        text_encoder: str | os.PathLike[str] | None,
    ) -> ImageModel: ...


FAMILIES: tuple[Family, ...] = (builtin, llamagen, janus, chameleon, emu3, lumina2)
