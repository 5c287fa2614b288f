"""Names and sizes of checkpoints that follow LlamaGen's layout."""

from __future__ import annotations

from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..transformer import TransformerConfig

BLOCK_NAMES = ("attention_norm", "attention.wqkv", "attention.wo", "ffn_norm", "feed_forward.w2")


def read_config(checkpoint: Checkpoint, head_dim: int, norm_eps: float = 1e-5) -> TransformerConfig:
    """Sizes of the transformer, from the shapes of its tensors."""
    _, dim = checkpoint.shape("tok_embeddings.weight", 2)
    fused, _ = checkpoint.shape("layers.0.attention.wqkv.weight", 2)
    ffn, _ = checkpoint.shape("layers.0.feed_forward.w1.weight", 2)
    heads = dim // head_dim
    config = TransformerConfig(
        dim=dim,
        layers=checkpoint.count("layers."),
        heads=heads,
        kv_heads=(fused // head_dim - heads) // 2,
        head_dim=head_dim,
        ffn=ffn,
        norm_eps=norm_eps,
    )
    return checked(checkpoint, config)


def checked(checkpoint: Checkpoint, config: TransformerConfig) -> TransformerConfig:
    """The sizes, where they make a transformer."""
    least = min(config.dim, config.layers, config.heads, config.kv_heads, config.ffn)
    if least < 1 or config.heads % config.kv_heads or config.head_dim < 2 or config.head_dim % 2:
        raise CheckpointError(
            f"{checkpoint.description}: the shapes of its tensors do not fit together: {config.heads} heads "
            f"of {config.head_dim} with {config.kv_heads} heads of keys, {config.layers} layers of "
            f"{config.dim}"
        )
    return config


def transformer_names(layers: int) -> dict[str, str | tuple[str, str]]:
    """Parameters of `ImageTransformer` -> tensors of the file."""
    names: dict[str, str | tuple[str, str]] = {
        "tok_embeddings.weight": "tok_embeddings.weight",
        "transformer.norm.weight": "norm.weight",
        "output.weight": "output.weight",
    }
    for i in range(layers):
        names |= {f"transformer.layers.{i}.{n}.weight": f"layers.{i}.{n}.weight" for n in BLOCK_NAMES}
        gate, up = (f"layers.{i}.feed_forward.{n}.weight" for n in ("w1", "w3"))
        names[f"transformer.layers.{i}.feed_forward.w13.weight"] = (gate, up)
    return names
