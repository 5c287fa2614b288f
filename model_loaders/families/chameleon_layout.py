"""Chameleon's transformer in files: Hugging Face's names, or those of Meta's own (`consolidated.pth`).

Beyond Llama it has a LayerNorm with bias over each head of queries and keys, before they are turned. Files
keep its weights once for all heads, once a group of heads, or once a head.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..strict import Part, Source
from ..transformer import TransformerConfig
from .blocks import BLOCK_NAMES
from .llama_layout import interleaved, llama_names, read_llama_config, setting

HUGGING_FACE_NORM = "model.layers.{}.self_attn.{}_norm.{}"
META_NORM = "layers.{}.attention.{}_normalization.{}"
HEAD_DIM, NORM_EPS = 128, 1e-5
POST_NORM_WIDTH = 8192  # of the 34B, the only size with its norms behind the branches


def in_hugging_face(checkpoint: Checkpoint) -> bool:
    return HUGGING_FACE_NORM.format(0, "q", "bias") in checkpoint


def in_meta(checkpoint: Checkpoint) -> bool:
    return META_NORM.format(0, "q", "bias") in checkpoint


def settings_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """config.json, or Meta's params.json beside the weights; empty where there is none."""
    if in_hugging_face(checkpoint):
        return checkpoint.config or {}
    text = checkpoint.text("params.json")
    if text is None:
        return {}
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{checkpoint.description}: params.json is damaged ({error})") from error
    settings = settings.get("model", settings) if isinstance(settings, dict) else None
    if not isinstance(settings, dict):
        raise CheckpointError(f"{checkpoint.description}: params.json: a JSON object was expected")
    return settings


def read_config(checkpoint: Checkpoint, settings: dict[str, Any]) -> TransformerConfig:
    table = "model.embed_tokens.weight" if in_hugging_face(checkpoint) else "tok_embeddings.weight"
    _, dim = checkpoint.shape(table, 2)
    switches = {"qk_norm": True, "post_norm": bool(settings.get("swin_norm", dim == POST_NORM_WIDTH))}
    if in_hugging_face(checkpoint):
        return read_llama_config(
            checkpoint, "model.", settings, head_dim=HEAD_DIM, norm_eps=NORM_EPS, **switches
        )
    (head_dim,) = checkpoint.shape(META_NORM.format(0, "q", "weight"), 1)
    width, _ = checkpoint.shape("layers.0.attention.wo.weight", 2)[::-1]
    if "layers.0.attention.wqkv.weight" in checkpoint:
        fused, _ = checkpoint.shape("layers.0.attention.wqkv.weight", 2)
        keys = (fused - width) // 2
    else:
        keys, _ = checkpoint.shape("layers.0.attention.wk.weight", 2)
    return TransformerConfig(
        dim=dim,
        layers=checkpoint.count("layers."),
        heads=width // head_dim,
        kv_heads=keys // head_dim,
        head_dim=head_dim,
        ffn=checkpoint.shape("layers.0.feed_forward.w2.weight", 2)[1],
        norm_eps=setting(checkpoint, settings, "norm_eps", NORM_EPS),
        **switches,
    )


def module_names(
    checkpoint: Checkpoint, config: TransformerConfig, image_rows: tuple[int, int]
) -> dict[str, Source]:
    """Parameters of a `TokenPromptTransformer` -> tensors of the file; of the head, the image tokens'
    rows."""
    if in_hugging_face(checkpoint):
        names, norm, pairs = llama_names(config, "model."), HUGGING_FACE_NORM, interleaved(config.head_dim)
        table, head = "model.embed_tokens.weight", "lm_head.weight"
    else:
        names, norm, pairs = meta_names(checkpoint, config), META_NORM, None
        table, head = "tok_embeddings.weight", "output.weight"
    names |= {"tok_embeddings.weight": table, "output.weight": Part(head, rows=image_rows)}
    for i in range(config.layers):
        for leaf in ("weight", "bias"):
            names[f"transformer.layers.{i}.attention.qk_norm.{leaf}"] = tuple(
                Part(norm.format(i, letter, leaf), change=for_each_head(heads, config.head_dim, pairs))
                for letter, heads in (("q", config.heads), ("k", config.kv_heads))
            )
    return names


def meta_names(checkpoint: Checkpoint, config: TransformerConfig) -> dict[str, Source]:
    """Meta's names are ours; its queries and keys already turn by neighbouring channels."""
    names: dict[str, Source] = {"transformer.norm.weight": "norm.weight"}
    for i in range(config.layers):
        ours, theirs = f"transformer.layers.{i}.", f"layers.{i}."
        names |= {f"{ours}{name}.weight": f"{theirs}{name}.weight" for name in BLOCK_NAMES}
        for stacked, parts in (
            ("attention.wqkv", ("attention.wq", "attention.wk", "attention.wv")),
            ("feed_forward.w13", ("feed_forward.w1", "feed_forward.w3")),
        ):
            whole = f"{theirs}{stacked}.weight"
            apart = tuple(f"{theirs}{part}.weight" for part in parts)
            names[f"{ours}{stacked}.weight"] = whole if whole in checkpoint else apart
    return names


def for_each_head(
    heads: int, head_dim: int, pairs: Callable[[Tensor], Tensor] | None
) -> Callable[[Tensor], Tensor]:
    """Weights of a norm, [D] or [groups, D], repeated for the heads of each group: [heads * D]."""

    def change(weight: Tensor) -> Tensor:
        groups = weight.reshape(-1, head_dim)
        if heads % len(groups):
            raise ValueError(f"{len(groups)} groups do not divide {heads} heads")
        flat = groups.repeat_interleave(heads // len(groups), 0).flatten()
        return flat if pairs is None else pairs(flat)

    return change
