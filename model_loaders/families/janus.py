"""Janus and Janus-Pro, in the original layout and in Hugging Face's.

A Llama that reads its prompt through the table of text tokens and its own image tokens through a table of 8
numbers a code and two layers; two layers more give the logits of codes. Its text head, vision tower and image
tokenizer lie in the same files and are not read here. The unconditional row of guidance has the length of its
prompt, with every token between the first and the last replaced by a pad that is seen like any other token.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...decoding.grid import TokenGrid
from ..checkpoint import Checkpoint
from ..image_model import SamplingDefaults
from ..image_transformer import fill
from ..missing_parts import text_source
from ..strict import Source
from ..text_tokenizer import TextTokenizer, find_text_tokenizer
from ..token_prompts import TokenPromptModel, TokenPromptTransformer
from ..transformer import TransformerConfig
from .llama_layout import llama_names, part_of_config, read_llama_config, rope_base, setting

FAMILY = "Janus"
SIZES = {(2048, 24): "1B", (4096, 30): "7B"}
GRID_SIDE = 24  # 384 pixels, the only size that was released
ROPE_BASE, NORM_EPS, HEAD_DIM = 10000.0, 1e-6, 128
BEGIN, PAD, IMAGE = "<｜begin▁of▁sentence｜>", "<｜▁pad▁｜>", "<begin_of_image>"
# Janus-Pro's names of the speakers are tokens of their own. Where they are none, the prompt is Janus-1.3B's.
PRO_ROLES, PLAIN_ROLES = ("<|User|>", "<|Assistant|>"), ("User", "Assistant")


@dataclass(frozen=True)
class Names:
    """Where a layout keeps what is needed, and what it has besides."""

    language_model: str
    codes: str
    aligner: tuple[str, str]
    head: tuple[str, str]
    settings: str  # of the language model, in config.json
    left_out: tuple[str, ...]


ORIGINAL = Names(
    language_model="language_model.model.",
    codes="gen_embed",
    aligner=("gen_aligner.layers.0", "gen_aligner.layers.2"),
    head=("gen_head.output_mlp_projector", "gen_head.vision_head"),
    settings="language_config",
    left_out=("language_model.lm_head.", "vision_model.", "aligner.", "gen_vision_model."),
)
HUGGING_FACE = Names(
    language_model="model.language_model.",
    codes="model.generation_embeddings",
    aligner=("model.generation_aligner.fc1", "model.generation_aligner.hidden_layers.0"),
    head=("model.generation_head.proj_out", "model.generation_head.vision_head"),
    settings="text_config",
    left_out=("lm_head.", "model.vision_model.", "model.aligner.", "model.vqmodel."),
)


class JanusLayout:
    def __init__(self, tokenizer: TextTokenizer) -> None:
        self.encode = tokenizer.encode
        self.begin, self.pad, self.image = (tokenizer.id_of(token) for token in (BEGIN, PAD, IMAGE))
        self.roles = PRO_ROLES if all(role in tokenizer for role in PRO_ROLES) else PLAIN_ROLES

    def conditional(self, text: str, grid: TokenGrid) -> list[int]:
        user, assistant = self.roles
        return [self.begin, *self.encode(f"{user}: {text.strip()}\n\n{assistant}:"), self.image]

    def unconditional(self, text: str, grid: TokenGrid) -> list[int]:
        between = len(self.conditional(text, grid)) - 2
        return [self.begin, *[self.pad] * between, self.image]


class JanusTransformer(TokenPromptTransformer):
    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: int,
        layout: JanusLayout,
        operations: Any,
        *,
        code_width: int,
        **rest: Any,
    ) -> None:
        super().__init__(FAMILY, config, vocabulary, layout, operations, **rest)
        factory = {"device": rest["device"], "dtype": rest["dtype"]}
        wide, linear = config.dim, operations.Linear
        self.codes = nn.Sequential(
            operations.Embedding(vocabulary, code_width, **factory),
            linear(code_width, wide, **factory),
            nn.GELU(),
            linear(wide, wide, **factory),
        )
        self.output = nn.Sequential(
            linear(wide, wide, **factory), nn.GELU(), linear(wide, vocabulary, **factory)
        )

    def embed(self, tokens: Tensor) -> Tensor:
        return self.codes(tokens)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)


class JanusModel(TokenPromptModel):
    family = FAMILY
    tokenizer_kind = "janus"


def names_in(checkpoint: Checkpoint) -> Names | None:
    return next((n for n in (ORIGINAL, HUGGING_FACE) if f"{n.head[1]}.weight" in checkpoint), None)


def recognises(checkpoint: Checkpoint) -> bool:
    return names_in(checkpoint) is not None


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> JanusModel:
    names = names_in(checkpoint)
    assert names is not None  # it was recognised
    settings = part_of_config(checkpoint, names.settings)
    config = read_llama_config(
        checkpoint, names.language_model, settings, head_dim=HEAD_DIM, norm_eps=NORM_EPS
    )
    inputs, _ = checkpoint.shape(f"{names.language_model}embed_tokens.weight", 2)
    vocabulary, code_width = checkpoint.shape(f"{names.codes}.weight", 2)
    size = SIZES.get((config.dim, config.layers), f"({config.layers} layers of {config.dim})")
    source = text_source("Janus-Pro-7B" if size == "7B" else "Janus-Pro", checkpoint)
    layout = JanusLayout(find_text_tokenizer(checkpoint, ["tokenizer.json"], inputs, source))
    network = JanusTransformer(
        config,
        vocabulary,
        layout,
        operations,
        code_width=code_width,
        inputs=inputs,
        rope_base=rope_base(checkpoint, settings, ROPE_BASE),
        device=torch.device("meta"),
        dtype=dtype,
    )
    sources = module_names(config, names)
    fill(network, checkpoint, sources, device=device, dtype=dtype, ignore=lambda n: is_left_out(n, names))
    side = grid_side(checkpoint)
    series = "Janus-Pro" if layout.roles is PRO_ROLES else "Janus"
    return JanusModel(
        f"{series} {size}", network, dtype, [TokenGrid(side, side)], SamplingDefaults(guidance=5.0)
    )


def module_names(config: TransformerConfig, names: Names) -> dict[str, Source]:
    sources = llama_names(config, names.language_model) | {
        "tok_embeddings.weight": f"{names.language_model}embed_tokens.weight",
        "codes.0.weight": f"{names.codes}.weight",
    }
    layers = {"codes.1": names.aligner[0], "codes.3": names.aligner[1]}
    layers |= {"output.0": names.head[0], "output.2": names.head[1]}
    return sources | {f"{a}.{leaf}": f"{b}.{leaf}" for a, b in layers.items() for leaf in ("weight", "bias")}


def is_left_out(name: str, names: Names) -> bool:
    return name.startswith(names.left_out) or name.endswith("rotary_emb.inv_freq")


def grid_side(checkpoint: Checkpoint) -> int:
    """Tokens a side. Both layouts say it of the vision tower, whose pictures have the same size."""
    vision = part_of_config(checkpoint, "vision_config")
    inner = vision.get("params")
    vision = vision | (inner if isinstance(inner, dict) else {})
    patch = setting(checkpoint, vision, "patch_size", 16)
    return setting(checkpoint, vision, "image_size", GRID_SIDE * patch) // patch
