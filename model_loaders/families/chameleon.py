"""Chameleon's children that draw: Lumina-mGPT (512, 768, 1024) and Anole.

They share transformer, vocabulary and image tokenizer, and differ in how a picture is written:

    Lumina-mGPT  begin, height, width, then rows of codes, each with a row end behind it
    Anole        begin, then 32 x 32 codes

Image header and row ends are written here, never sampled: upstream samples them, and now and then gets
pictures of another size, or none. Plain Chameleon has the same shape but was published without the ability to
draw: where a file shows that it is that one, it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from ...decoding.grid import TokenGrid
from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..image_model import SamplingDefaults
from ..image_transformer import Prompt
from ..missing_parts import text_source
from ..text_tokenizer import TextTokenizer, find_text_tokenizer
from ..token_prompts import TokenPromptModel, TokenPromptTransformer, load_network
from .chameleon_layout import (
    HUGGING_FACE_NORM,
    in_hugging_face,
    in_meta,
    module_names,
    read_config,
    settings_of,
)
from .llama_layout import rope_base, setting

LUMINA, ANOLE = "Lumina-mGPT", "Anole"
SIZES = {(4096, 32): "7B", (8192, 48): "34B"}
TOKENIZER_FILES = ("tokenizer.json", "text_tokenizer.json")
MOST_TOKENS = 65536  # Lumina-mGPT 2.0 has the same names and more
BEGIN, END_OF_TURN, IMAGE, ROW_END = "<s>", "<reserved08706>", "<racm3:break>", "<reserved08799>"
PIXELS = 16  # of a token, each way
UNIT = 32  # pixels, in which sides are counted and named
CLASSES = (768, 512, 1024)  # of Lumina-mGPT by area, in pixels a side of the square
LONGEST_STREAM = 4165  # tokens of a picture of the largest class; the others fit into 4096 with their prompts
LONGEST_SIDE = 4  # times the shorter one
NOT_SAID = (
    "the file does not say for sure which size it was trained for: {0} x {0} is taken. For Lumina-mGPT 512 "
    "set rows and columns to 32, for 768 to 48, for 1024 to 64"
)
ANOLE_SETTINGS = "Anole was published with temperature 0.7 and top-p 0.9: -1 in both takes them"
MAYBE_CHAMELEON = (
    "this file could be Anole or plain Chameleon, which cannot draw: if noise comes out instead of a "
    "picture, it is plain Chameleon; take Anole"
)


class LuminaLayout:
    """`Generate an image of 768x768 …`, end of turn, begin, height and width in units of 32 pixels."""

    def __init__(self, tokenizer: TextTokenizer, begin: str = BEGIN, pixels: int = PIXELS) -> None:
        self.tokenizer = tokenizer
        self.pixels = pixels  # of a token, each way
        self.begin, self.end, self.image, self.row_end = (
            tokenizer.id_of(token) for token in (begin, END_OF_TURN, IMAGE, ROW_END)
        )

    def conditional(self, text: str, grid: TokenGrid) -> list[int]:
        size = f"{grid.cols * self.pixels}x{grid.rows * self.pixels}"
        request = f"Generate an image of {size} according to the following prompt:\n{text}"
        return [self.begin, *self.tokenizer.encode(request), self.end, *self.unconditional(text, grid)]

    def unconditional(self, text: str, grid: TokenGrid) -> list[int]:
        """The picture alone, without the token that begins every text."""
        return [self.image, self.side(grid.rows), self.side(grid.cols)]

    def side(self, tokens: int) -> int:
        """The token that names a side of the picture."""
        return self.tokenizer.id_of(f"<reserved{8800 + tokens * self.pixels // UNIT:05d}>")


class AnoleLayout:
    def __init__(self, tokenizer: TextTokenizer) -> None:
        self.encode = tokenizer.encode
        self.begin, self.end, self.image = (tokenizer.id_of(token) for token in (BEGIN, END_OF_TURN, IMAGE))

    def conditional(self, text: str, grid: TokenGrid) -> list[int]:
        return [self.begin, *self.encode(text), self.end, self.image]

    def unconditional(self, text: str, grid: TokenGrid) -> list[int]:
        return [self.begin, self.image]


class ChameleonModel(TokenPromptModel):
    tokenizer_kind = "chameleon"

    def __init__(
        self,
        name: str,
        network: TokenPromptTransformer,
        dtype: torch.dtype,
        grids: list[TokenGrid],
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(
            name,
            network,
            dtype,
            grids,
            # Lumina-mGPT: its published command for pictures from text (cfg 4.0, top-k 2000); its library's
            # own default is 3.0, its page's 3.0 with top-k 4000.
            # Anole: its script. Without a picture in the prompt, its three-row guidance is the usual one.
            SamplingDefaults(4.0, top_k=2000)
            if network.family == LUMINA
            else SamplingDefaults(3.0, temperature=0.7, top_p=0.9),
        )
        self.family = network.family
        self.notes = notes  # what the file leaves open, said with every prompt

    def encode_prompt(self, text: str) -> Prompt:
        prompt = super().encode_prompt(text)
        return replace(prompt, notes=(*prompt.notes, *self.notes))


def recognises(checkpoint: Checkpoint) -> bool:
    if in_hugging_face(checkpoint):
        return checkpoint.shape("model.embed_tokens.weight", 2)[0] <= MOST_TOKENS
    return in_meta(checkpoint)


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> ChameleonModel:
    settings = settings_of(checkpoint)
    config = read_config(checkpoint, settings)
    family, notes = family_of(checkpoint, settings, config.heads)
    table = "model.embed_tokens.weight" if in_hugging_face(checkpoint) else "tok_embeddings.weight"
    inputs, _ = checkpoint.shape(table, 2)
    source = text_source(family, checkpoint)
    tokenizer = find_text_tokenizer(checkpoint, TOKENIZER_FILES, inputs, source)
    codes = tokenizer.codes(image_token)
    grids, layout = [TokenGrid(32, 32)], AnoleLayout(tokenizer)
    if family == LUMINA:
        layout = LuminaLayout(tokenizer)
        large = setting(checkpoint, settings, "max_position_embeddings", 4096) >= LONGEST_STREAM
        grids = lumina_grids(layout.row_end, 1024 if large else CLASSES[0])
        notes = (NOT_SAID.format(grids[0].cols * PIXELS),)
    network = load_network(
        checkpoint,
        family,
        config,
        layout,
        module_names(checkpoint, config, codes),
        codes=codes,
        inputs=inputs,
        rope_base=rope_base(checkpoint, settings, 10000.0),
        ignore=is_left_out,
        device=device,
        dtype=dtype,
        operations=operations,
    )
    size = SIZES.get((config.dim, config.layers), f"({config.layers} layers of {config.dim})")
    return ChameleonModel(f"{family} {size}", network, dtype, grids, notes)


def family_of(checkpoint: Checkpoint, settings: dict[str, Any], heads: int) -> tuple[str, tuple[str, ...]]:
    """Which of them it is, and what the file leaves open."""
    if in_meta(checkpoint):
        return ANOLE, (MAYBE_CHAMELEON, ANOLE_SETTINGS)
    inside = [name for name in checkpoint.tensors if name.startswith("model.vqmodel.")]
    if any(name.startswith("model.vqmodel.decoder.") for name in inside):
        return ANOLE, (ANOLE_SETTINGS,)
    if inside:
        raise CheckpointError(
            f"{checkpoint.description} is plain Chameleon: its image tokenizer has no decoder, for it was "
            "published without the ability to draw (what it would draw is noise). Take Anole, which was "
            "trained on from it to draw: GAIR/Anole-7b-v0.1 or leloy/Anole-7b-v0.1-hf; or Lumina-mGPT"
        )
    # Lumina-mGPT's files have no image tokenizer, a setting of their own, and norms once a group of heads.
    norm = checkpoint.tensors[HUGGING_FACE_NORM.format(0, "q", "bias")].shape
    groups = norm[0] if len(norm) == 2 else 1
    if "mask_image_logits" in settings or groups < heads:
        return LUMINA, ()
    return ANOLE, (MAYBE_CHAMELEON, ANOLE_SETTINGS)


def is_left_out(name: str) -> bool:
    return name.startswith("model.vqmodel.") or name == "rope.freqs" or name.endswith("rotary_emb.inv_freq")


def image_token(code: int) -> str:
    """Its name spells the code in letters, A for 0."""
    return "IMGIMG" + "".join(chr(ord("A") + int(digit)) for digit in str(code)) + "Z"


def lumina_grids(
    row_end: int, usual: int, classes: tuple[int, ...] = CLASSES, pixels: int = PIXELS
) -> list[TokenGrid]:
    """All sizes of all classes, the square of class `usual` first, then the other squares: a lone number of
    rows or columns is looked up in this order. A token is `pixels` wide and high."""
    ordered = sorted(classes, key=lambda side: side != usual)
    shapes = [(side // pixels, side // pixels) for side in ordered]
    shapes += [shape for side in ordered for shape in class_shapes(side, pixels)]
    return [TokenGrid(rows, cols, row_end=(row_end,)) for rows, cols in dict.fromkeys(shapes)]


def class_shapes(side: int, pixels: int = PIXELS) -> Iterator[tuple[int, int]]:
    """Sizes [rows, cols] in tokens that Lumina-mGPT was trained on, from wide to tall.

    Sides are whole units (of 32 pixels): the outermost shapes whose area is at most that of the square.
    """
    most = (side // UNIT) ** 2
    width, height = most, 1
    while width:
        if max(width, height) <= LONGEST_SIDE * min(width, height):
            yield height * UNIT // pixels, width * UNIT // pixels
        if (height + 1) * width <= most:
            height += 1
        else:
            width -= 1
