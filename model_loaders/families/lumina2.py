"""Lumina-mGPT 2.0: Chameleon's transformer and Lumina-mGPT's prompts with another vocabulary.

Text tokens are Qwen2.5's, with Chameleon's control tokens after them and the image codes at the end; a token
of the image tokenizer is 8 pixels wide and high. The text tokenizer has no token that begins a text, so
upstream takes the one that ends it.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from ..checkpoint import Checkpoint
from ..companions import TEXT, where_from
from ..errors import CheckpointError
from ..image_model import SamplingDefaults
from ..missing_parts import text_source
from ..text_tokenizer import find_text_tokenizer
from ..token_prompts import TokenPromptModel, load_network
from .chameleon import MOST_TOKENS, SIZES, LuminaLayout, lumina_grids
from .chameleon_layout import in_hugging_face, module_names, read_config
from .llama_layout import rope_base

FAMILY = "Lumina-mGPT 2.0"
FIRST_CODE, CODES = 155000, 16384
PIXELS = 8  # of a token, each way
CLASSES = (768, 512)  # by area, in pixels a side of the square; 512 is Omni's, for pictures from pictures
TOKENIZER_CONFIG = "tokenizer_config.json"


class Lumina2Model(TokenPromptModel):
    family = FAMILY
    tokenizer_kind = "movq-lumina2"


def recognises(checkpoint: Checkpoint) -> bool:
    return in_hugging_face(checkpoint) and checkpoint.shape("model.embed_tokens.weight", 2)[0] > MOST_TOKENS


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> Lumina2Model:
    settings = checkpoint.config or {}
    config = read_config(checkpoint, settings)
    inputs, _ = checkpoint.shape("model.embed_tokens.weight", 2)
    tokenizer = find_text_tokenizer(checkpoint, ["tokenizer.json"], inputs, text_source(FAMILY, checkpoint))
    layout = LuminaLayout(tokenizer, begin_token(checkpoint), PIXELS)
    codes = (FIRST_CODE, FIRST_CODE + CODES)
    network = load_network(
        checkpoint,
        FAMILY,
        config,
        layout,
        module_names(checkpoint, config, codes),
        codes=codes,
        inputs=inputs,
        rope_base=rope_base(checkpoint, settings, 10000.0),
        ignore=lambda name: name.startswith("model.vqmodel.") or name.endswith("rotary_emb.inv_freq"),
        device=device,
        dtype=dtype,
        operations=operations,
    )
    size = SIZES.get((config.dim, config.layers), f"({config.layers} layers of {config.dim})")
    grids = lumina_grids(layout.row_end, CLASSES[0], CLASSES, PIXELS)
    return Lumina2Model(f"{FAMILY} {size}", network, dtype, grids, SamplingDefaults(4.0, top_k=4096))


def begin_token(checkpoint: Checkpoint) -> str:
    """Name of the token before the prompt: the one that begins a text, else the one that ends it."""
    text = checkpoint.text(TOKENIZER_CONFIG)
    if text is None:
        raise CheckpointError(
            f"{TOKENIZER_CONFIG} is missing beside {checkpoint.path.name}: it says which token begins a "
            f"prompt. {where_from(FAMILY, TEXT)}"
        )
    try:
        config = json.loads(text)
        for key in ("bos_token", "eos_token"):
            token = config.get(key)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                return token
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"{TOKENIZER_CONFIG} of {checkpoint.path.name} is damaged ({error})") from error
    raise CheckpointError(
        f"{TOKENIZER_CONFIG} of {checkpoint.path.name} names neither a bos_token nor an eos_token"
    )
