"""Emu3-Gen and Emu3-Stage1, in the original layout and in both of Hugging Face's.

    begin, text and what upstream adds to it, image start, "rows*columns", image token,
    then rows of codes, each with a row end behind it

The unconditional row of guidance is a fixed list of faults in the same form. Size and row ends are written
here, never sampled.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from ...decoding.grid import TokenGrid
from ..checkpoint import Checkpoint
from ..image_model import SamplingDefaults
from ..missing_parts import text_source
from ..strict import Part
from ..text_tokenizer import TextTokenizer
from ..token_prompts import TokenPromptModel, load_network
from .emu3_tokenizer import emu3_tokenizer
from .llama_layout import llama_names, part_of_config, read_llama_config, rope_base, setting

FAMILY = "Emu3"
SIZES = {(4096, 32): "8B"}
ROWS = 184622  # of the released models' tables
ROPE_BASE, NORM_EPS, HEAD_DIM = 1000000.0, 1e-5, 128
# Where the language model and its head lie: Hugging Face's now and formerly, the original.
LAYOUTS = (
    ("model.text_model.", "lm_head.weight"),
    ("text_model.model.", "text_model.lm_head.weight"),
    ("model.", "lm_head.weight"),
)
BEGIN, ROW_END = "<|extra_203|>", "<|extra_200|>"
IMAGE_START, IMAGE = "<|image start|>", "<|image token|>"
PRAISE = " masterpiece, film grained, best quality."
FAULTS = (
    "lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer digits, cropped, worst "
    "quality, low quality, normal quality, jpeg artifacts, signature, watermark, username, blurry."
)
PIXELS = 8  # of a token, each way
AREAS = (518400, 262144)  # of Emu3-Gen and of Emu3-Stage1, in pixels
RATIOS = ((1, 1), (16, 9), (9, 16), (4, 3), (3, 4), (3, 2), (2, 3))  # width, height


class Emu3Layout:
    def __init__(self, tokenizer: TextTokenizer) -> None:
        self.encode = tokenizer.encode
        self.begin, self.row_end, self.image_start, self.image = (
            tokenizer.id_of(token) for token in (BEGIN, ROW_END, IMAGE_START, IMAGE)
        )

    def conditional(self, text: str, grid: TokenGrid) -> list[int]:
        return self.written(text + PRAISE, grid)

    def unconditional(self, text: str, grid: TokenGrid) -> list[int]:
        return self.written(FAULTS, grid)

    def written(self, text: str, grid: TokenGrid) -> list[int]:
        size = self.encode(f"{grid.rows}*{grid.cols}")
        return [self.begin, *self.encode(text), self.image_start, *size, self.image]


class Emu3Model(TokenPromptModel):
    family = FAMILY
    tokenizer_kind = "movq-emu3"


def recognises(checkpoint: Checkpoint) -> bool:
    prefix, _ = layout_of(checkpoint) or ("", "")
    table = f"{prefix}embed_tokens.weight"
    if not prefix or f"{prefix}layers.0.self_attn.q_norm.weight" in checkpoint:
        return False
    said = str((checkpoint.config or {}).get("model_type", "")).lower()
    return said.startswith("emu3") or checkpoint.tensors[table].shape[:1] == (ROWS,)


def layout_of(checkpoint: Checkpoint) -> tuple[str, str] | None:
    """What stands before the names of the language model, and the name of its head."""
    return next((layout for layout in LAYOUTS if f"{layout[0]}embed_tokens.weight" in checkpoint), None)


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> Emu3Model:
    prefix, head = layout_of(checkpoint) or LAYOUTS[-1]
    settings = (checkpoint.config or {}) | part_of_config(checkpoint, "text_config")
    config = read_llama_config(checkpoint, prefix, settings, head_dim=HEAD_DIM, norm_eps=NORM_EPS)
    inputs, _ = checkpoint.shape(f"{prefix}embed_tokens.weight", 2)
    tokenizer = emu3_tokenizer(checkpoint, inputs, text_source(FAMILY, checkpoint))
    codes = tokenizer.codes(image_token)
    layout = Emu3Layout(tokenizer)
    names = llama_names(config, prefix) | {
        "tok_embeddings.weight": f"{prefix}embed_tokens.weight",
        "output.weight": Part(head, rows=codes),
    }
    network = load_network(
        checkpoint,
        FAMILY,
        config,
        layout,
        names,
        codes=codes,
        inputs=inputs,
        rope_base=rope_base(checkpoint, settings, ROPE_BASE),
        ignore=is_left_out,
        device=device,
        dtype=dtype,
        operations=operations,
    )
    size = SIZES.get((config.dim, config.layers), f"({config.layers} layers of {config.dim})")
    area = setting(checkpoint, settings, "image_area", AREAS[0])
    grids = [
        TokenGrid(*shape(area, width, height), row_end=(layout.row_end,))
        for area in dict.fromkeys((area, *AREAS))
        for width, height in RATIOS
    ]
    return Emu3Model(f"{FAMILY} {size}", network, dtype, grids, SamplingDefaults(3.0, top_k=2048))


def image_token(code: int) -> str:
    return f"<|visual token {code:06d}|>"


def shape(area: int, width: int, height: int) -> tuple[int, int]:
    """Rows and columns of the picture of about that many pixels with sides in that ratio, as upstream
    rounds."""
    unit = (area / (width * height)) ** 0.5
    return round(height * unit / PIXELS), round(width * unit / PIXELS)


def is_left_out(name: str) -> bool:
    """Hugging Face's folder holds the image tokenizer as well."""
    return name.startswith(("model.vqmodel.", "vqmodel.")) or name.endswith("rotary_emb.inv_freq")
