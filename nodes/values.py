"""What travels on the wires between the nodes. Values are shared by reference: nobody changes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from ..decoding import Codebook
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer


@dataclass(frozen=True, eq=False)
class TokenizerValue:
    """JACOBI_AR_TOKENIZER: an image tokenizer and the host's handle on its memory."""

    tokenizer: ImageTokenizer
    resident: Any  # host.Resident

    @cached_property
    def codebook(self) -> Codebook:
        """For decoders that compare codes; remembers which look alike."""
        return Codebook(self.tokenizer.codebook)

    def decode(self, tokens: Tensor) -> Tensor:
        """[B, rows, cols] -> [B, height, width, 3] float32 0..1. The resident must have been loaded."""
        return self.tokenizer.decode(tokens, self.resident.device)


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """An image model and the host's handles on its memory."""

    model: ImageModel
    resident: Any  # host.Resident
    text_resident: Any = None  # of its text encoder, where it has one


@dataclass(frozen=True, eq=False)
class ModelValue:
    """JACOBI_AR_MODEL: a loaded model, and its image tokenizer for live previews."""

    loaded: LoadedModel
    tokenizer: TokenizerValue

    @property
    def model(self) -> ImageModel:
        return self.loaded.model


@dataclass(frozen=True, eq=False)
class TokenGridValue:
    """JACOBI_AR_TOKENS: pictures as tokens, with what is needed to decode them and to make them again."""

    tokens: Tensor  # [B, rows, cols] int64 on the CPU, codebook indices
    tokenizer_kind: str
    family: str
    seeds: tuple[int, ...]  # one a picture
    prompt: str
    decoder: str  # described in words
