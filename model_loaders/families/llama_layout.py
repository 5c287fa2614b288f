"""Names, shapes and order of rows in checkpoints that follow Hugging Face's Llama."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..strict import Part, Source
from ..transformer import TransformerConfig

RENAMED = {
    "attention_norm": "input_layernorm",
    "attention.wo": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "feed_forward.w2": "mlp.down_proj",
}


def read_llama_config(
    checkpoint: Checkpoint,
    prefix: str,
    settings: dict[str, Any],
    *,
    head_dim: int,
    norm_eps: float,
    **more: Any,
) -> TransformerConfig:
    """Sizes of the transformer whose tensors begin with `prefix`: shapes where they tell, else `settings`.

    `settings` is the language model's part of config.json, may be empty; `head_dim` and `norm_eps` are what
    the family's released models have, for where it does not say. `more` are switches of the config.
    """
    _, dim = checkpoint.shape(f"{prefix}embed_tokens.weight", 2)
    queries, _ = checkpoint.shape(f"{prefix}layers.0.self_attn.q_proj.weight", 2)
    keys, _ = checkpoint.shape(f"{prefix}layers.0.self_attn.k_proj.weight", 2)
    ffn, _ = checkpoint.shape(f"{prefix}layers.0.mlp.gate_proj.weight", 2)
    heads = setting(checkpoint, settings, "num_attention_heads", queries // head_dim)
    if heads < 1 or queries % heads or keys % (queries // heads) or queries // heads % 2:
        raise CheckpointError(
            f"{checkpoint.description}: {heads} heads, as config.json says, do not divide {queries} queries "
            f"and {keys} keys"
        )
    head_dim = queries // heads
    return TransformerConfig(
        dim=dim,
        layers=checkpoint.count(f"{prefix}layers."),
        heads=heads,
        kv_heads=keys // head_dim,
        head_dim=head_dim,
        ffn=ffn,
        norm_eps=setting(checkpoint, settings, "rms_norm_eps", norm_eps),
        **more,
    )


def part_of_config(checkpoint: Checkpoint, key: str) -> dict[str, Any]:
    """A group of config.json; empty where there is no such file, or not this group in it."""
    part = (checkpoint.config or {}).get(key, {})
    if not isinstance(part, dict):
        raise CheckpointError(f"{checkpoint.description}: config.json has no usable {key}")
    return part


def setting(checkpoint: Checkpoint, settings: dict[str, Any], key: str, usual: Any) -> Any:
    """A number of config.json, `usual` where it is not there."""
    value = settings.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise CheckpointError(f"{checkpoint.description}: config.json has no usable {key}: {value!r}")
    return type(usual)(value)


def rope_base(checkpoint: Checkpoint, settings: dict[str, Any], usual: float) -> float:
    """The base of the rotary positions; newer config files keep it in a group of its own."""
    group = settings.get("rope_parameters")
    return setting(checkpoint, settings | (group if isinstance(group, dict) else {}), "rope_theta", usual)


def llama_names(config: TransformerConfig, prefix: str) -> dict[str, Source]:
    """Parameters of `Transformer` -> tensors of the file, but for the norms of queries and keys."""
    pairs = interleaved(config.head_dim)
    names: dict[str, Source] = {"transformer.norm.weight": f"{prefix}norm.weight"}
    for i in range(config.layers):
        ours, theirs = f"transformer.layers.{i}.", f"{prefix}layers.{i}."
        names |= {f"{ours}{a}.weight": f"{theirs}{b}.weight" for a, b in RENAMED.items()}
        q, k, v = (f"{theirs}self_attn.{letter}_proj.weight" for letter in "qkv")
        names[f"{ours}attention.wqkv.weight"] = (Part(q, change=pairs), Part(k, change=pairs), v)
        gate, up = (f"{theirs}mlp.{name}_proj.weight" for name in ("gate", "up"))
        names[f"{ours}feed_forward.w13.weight"] = (gate, up)
    return names


def interleaved(head_dim: int) -> Callable[[Tensor], Tensor]:
    """Reorders the rows of each head for rotary positions: Llama's files have channel j turn with channel
    j + D / 2, our transformer turns neighbours."""

    def change(rows: Tensor) -> Tensor:  # [heads * D, …]
        return rows.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)

    return change
