"""What travels on the wires between the nodes. Values are shared by reference: nobody changes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from ..decoding import Codebook
from ..model_loaders.image_model import ImageModel
from ..model_loaders.image_tokenizer import ImageTokenizer
from .picture_facts import PictureFacts
from .tokenizer_identity import TokenizerIdentity, fingerprint


@dataclass(frozen=True, eq=False)
class TokenizerValue:
    """JACOBI_AR_TOKENIZER: an image tokenizer and the host's handle on its memory."""

    tokenizer: ImageTokenizer
    resident: Any  # host.Resident

    @cached_property
    def codebook(self) -> Codebook:
        """For decoders that compare codes; remembers which look alike."""
        return Codebook(self.tokenizer.codebook)

    @cached_property
    def identity(self) -> TokenizerIdentity:
        """What its tokens are marked with."""
        vq = self.tokenizer
        return TokenizerIdentity(vq.kind, vq.vocabulary, fingerprint(vq.codebook))

    def decode(self, tokens: Tensor, strips: bool = False) -> Tensor:
        """[B, rows, cols] -> [B, height, width, 3] float32 0..1. The resident must have been loaded. `strips`
        saves memory."""
        return self.tokenizer.decode(tokens, self.resident.device, strips)


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

    tokens: Tensor  # [B, rows, cols] int64 on the CPU: codebook indices, -1 where a cell is to be drawn
    tokenizer: TokenizerIdentity
    facts: tuple[PictureFacts, ...]  # one a picture

    @property
    def pictures(self) -> int:
        return self.tokens.shape[0]

    def check_tokenizer(self, connected: TokenizerIdentity) -> None:
        """ValueError where another image tokenizer is to read these tokens."""
        if not self.tokenizer.matches(connected):
            raise ValueError(
                f"these tokens belong to another image tokenizer ({self.tokenizer.describe()}) than the "
                f"connected one ({connected.describe()}): the picture would be noise. Load the model whose "
                "tokenizer made them, and connect that."
            )

    def check_complete(self) -> None:
        """ValueError where cells are still to be drawn."""
        if open_cells := int((self.tokens < 0).sum()):
            raise ValueError(
                f"{open_cells} tokens are not drawn yet. Connect these tokens to fixed_tokens of Generate "
                "Image Tokens, and take what comes out of it."
            )
