"""LlamaGen: class-to-image (c2i) and text-to-image (t2i) checkpoints of the official layout.

The two differ in the prefix: one class embedding, or 120 caption features of flan-t5-xl, padded on the left.
The rotary table is all zeros at prefix positions, cosine and sine both: queries and keys vanish there, so
what sees prefix positions weighs them all alike. Nothing in the weights tells the resolution they were
trained for, so three grids are offered; one other than the trained gives poor pictures (guessed_grid.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...decoding.grid import TokenGrid
from ..checkpoint import Checkpoint
from ..companions import ENCODER, where_from
from ..errors import CheckpointError, PromptError
from ..guessed_grid import ROTARY_TABLE, GuessedGrid, grid_hint
from ..image_model import ImageModel, SamplingDefaults
from ..image_transformer import ImageTransformer, Prompt, PromptRows, check_family, fill
from ..rotary import Turns, grid_rotation
from ..t5 import LENGTH, TextEncoder, load_text_encoder
from ..transformer import TransformerConfig
from .blocks import read_config, transformer_names

CLASSES, TEXT = "LlamaGen c2i", "LlamaGen t2i"
ROPE_BASE = 10000.0
SIZES = {(768, 12): "B", (1024, 24): "L", (1280, 36): "XL", (1536, 48): "XXL", (3200, 24): "3B"}
CLASS_TABLE = "cls_embedding.embedding_table.weight"
UNCONDITIONAL = "cls_embedding.uncond_embedding"


class LlamaGenTransformer(ImageTransformer):
    """What both kinds share: positions."""

    def turns(self, grid: TokenGrid, visible: Tensor, dtype: torch.dtype) -> Turns:
        cells = grid_rotation(grid, self.transformer.config.head_dim, ROPE_BASE, dtype)
        prompt = torch.zeros(1, visible.shape[1], cells.shape[1], dtype=cells.dtype)
        return Turns(prompt, cells)


class ClassTransformer(LlamaGenTransformer):
    def __init__(
        self, config: TransformerConfig, vocabulary: int, classes: int, operations: Any, **factory: Any
    ) -> None:
        super().__init__(config, vocabulary, operations, **factory)
        self.classes = classes  # the row after the last class is the unconditional one
        self.class_embedding = operations.Embedding(classes + 1, config.dim, **factory)

    def prompt_rows(
        self,
        prompts: Sequence[Prompt],
        grid: TokenGrid,
        guided: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> PromptRows:
        check_family(prompts, CLASSES)
        labels = torch.stack([prompt.tensors["label"] for prompt in prompts])[:, None]  # [B, 1]
        if guided:
            labels = torch.cat([labels, torch.full_like(labels, self.classes)])
        x = self.class_embedding(labels.to(device)).to(dtype)
        return PromptRows(x, torch.ones(x.shape[:2], dtype=torch.bool, device=device))


class CaptionTransformer(LlamaGenTransformer):
    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: int,
        prefix: int,
        features: int,
        operations: Any,
        **factory: Any,
    ) -> None:
        super().__init__(config, vocabulary, operations, **factory)
        self.prefix = prefix
        # A table of one row a position, so that the host can move it as it does any other module.
        self.unconditional = operations.Embedding(prefix, features, **factory)
        self.fc1 = operations.Linear(features, config.dim, bias=False, **factory)
        self.fc2 = operations.Linear(config.dim, config.dim, bias=False, **factory)
        self.act = nn.GELU(approximate="tanh")

    def prompt_rows(
        self,
        prompts: Sequence[Prompt],
        grid: TokenGrid,
        guided: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> PromptRows:
        check_family(prompts, TEXT)
        captions = [prompt.tensors["features"] for prompt in prompts]  # each [n, features]
        width = captions[0].shape[1]
        features = torch.zeros(len(captions), self.prefix, width, dtype=dtype, device=device)
        visible = torch.zeros(len(captions), self.prefix, dtype=torch.bool, device=device)
        for row, caption in enumerate(captions):
            features[row, self.prefix - len(caption) :] = caption.to(device, dtype)
            visible[row, self.prefix - len(caption) :] = True
        if guided:
            # All of the unconditional rows, but seen through the mask of the caption, as in training.
            places = torch.arange(self.prefix, device=device)
            nothing = self.unconditional(places).to(dtype).expand_as(features)
            features, visible = torch.cat([features, nothing]), visible.repeat(2, 1)
        return PromptRows(self.fc2(self.act(self.fc1(features))), visible)


class ClassModel(GuessedGrid):
    family = CLASSES
    tokenizer_kind = "llamagen"

    def __init__(self, name: str, transformer: ClassTransformer, dtype: torch.dtype) -> None:
        super().__init__(
            name, transformer, dtype, square_grids(24, 16, 32), SamplingDefaults(4.0, top_k=2000), prefix=1
        )
        self.classes = transformer.classes

    def encode_prompt(self, text: str) -> Prompt:
        match = re.fullmatch(r"(?:class\s*[:#]?\s*)?(\d{1,6})", text.strip(), flags=re.IGNORECASE)
        if match is None or int(match[1]) >= self.classes:
            raise PromptError(
                f"{self.name} draws one of {self.classes} classes and reads no words: the prompt must be "
                f'a number from 0 to {self.classes - 1} (ImageNet order), like 7 or "class 7"; '
                f'it is "{text[:60]}"'
            )
        return Prompt(CLASSES, text, {"label": torch.tensor(int(match[1]))})


class TextModel(GuessedGrid):
    family = TEXT
    tokenizer_kind = "llamagen"

    def __init__(
        self,
        name: str,
        transformer: CaptionTransformer,
        dtype: torch.dtype,
        text_encoder: TextEncoder | None,
    ) -> None:
        super().__init__(
            name,
            transformer,
            dtype,
            square_grids(32, 16, 24),
            SamplingDefaults(7.5, top_k=1000),
            prefix=transformer.prefix,
        )
        self.text_encoder = text_encoder
        # Numbers a token that captions must have.
        self.caption_width = transformer.unconditional.embedding_dim

    def encode_prompt(self, text: str) -> Prompt:
        if self.text_encoder is None:
            raise PromptError(
                f"{self.name} reads captions through the text encoder flan-t5-xl, and none was loaded. "
                f"{where_from(TEXT, ENCODER)}, choose it in the Load node and run again"
            )
        caption = self.text_encoder.encode(text)
        return Prompt(TEXT, text, {"features": caption.valid}, caption.notes)


def square_grids(*sides: int) -> list[TokenGrid]:
    return [TokenGrid(side, side) for side in sides]


def recognises(checkpoint: Checkpoint) -> bool:
    return any(name.startswith("cls_embedding.") for name in checkpoint.tensors)


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> ImageModel:
    vocabulary, dim = checkpoint.shape("tok_embeddings.weight", 2)
    # The number of heads is not in the file: all released sizes have heads of 64, but for 3B with 32 of 100.
    config = read_config(checkpoint, head_dim=100 if dim == 3200 else 64)
    meta = {"device": torch.device("meta"), "dtype": dtype}
    names = transformer_names(config.layers)
    if CLASS_TABLE in checkpoint:
        classes = checkpoint.shape(CLASS_TABLE, 2)[0] - 1
        network = ClassTransformer(config, vocabulary, classes, operations, **meta)
        names["class_embedding.weight"] = CLASS_TABLE
    else:
        if UNCONDITIONAL not in checkpoint:
            raise CheckpointError(
                f"{checkpoint.description}: {UNCONDITIONAL} is missing. It is what guidance compares with, "
                "and cannot be made up: take the complete checkpoint"
            )
        prefix, features = checkpoint.shape(UNCONDITIONAL, 2)
        if prefix != LENGTH:
            raise CheckpointError(
                f"{checkpoint.description}: {UNCONDITIONAL} has {prefix} positions, captions have {LENGTH}"
            )
        network = CaptionTransformer(config, vocabulary, prefix, features, operations, **meta)
        names["unconditional.weight"] = UNCONDITIONAL
        names |= {f"{fc}.weight": f"cls_embedding.cap_proj.{fc}.weight" for fc in ("fc1", "fc2")}
    fill(network, checkpoint, names, device=device, dtype=dtype, ignore=is_leftover)
    size = SIZES.get((config.dim, config.layers), f"({config.layers} layers of {config.dim})")
    model: ClassModel | TextModel
    if isinstance(network, ClassTransformer):
        model = ClassModel(f"{CLASSES} {size}", network, dtype)
    else:
        encoder = None
        if text_encoder is not None:
            encoder = load_text_encoder(text_encoder, device=device, dtype=dtype)
            if encoder.width != features:
                raise CheckpointError(
                    f"the text encoder {encoder.name} does not belong to {checkpoint.description}: it gives "
                    f"{encoder.width} numbers a token, the model reads {features} (flan-t5-xl gives 2048)"
                )
        model = TextModel(f"{TEXT} {size}", network, dtype, encoder)
    model.hint = grid_hint(checkpoint, model.prefix)
    return model


def is_leftover(name: str) -> bool:
    """Tables and caches that some training code saved along; they hold nothing learned."""
    return name == ROTARY_TABLE or "kv_cache" in name
