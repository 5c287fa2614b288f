"""Files of released models' shapes and types: random, or with holes in the place of weights, which take no
disk space and read as zeros."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import common  # noqa: F401  (makes jacobi_ar importable)
import torch
from jacobi_ar.tests.tiny_tokenizer import write_tokenizer

Shapes = dict[str, tuple[int, ...]]
BYTES = {"F32": 4, "BF16": 2}
WORDS = {"red": 160}
BASIC = {name: number for number, name in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}


def llamagen_c2i(dim: int, layers: int, ffn: int) -> Shapes:
    """The official layout (float32)."""
    shapes: Shapes = {
        "tok_embeddings.weight": (16384, dim),
        "cls_embedding.embedding_table.weight": (1001, dim),
    }
    for i in range(layers):
        shapes |= {
            f"layers.{i}.attention.wqkv.weight": (3 * dim, dim),
            f"layers.{i}.attention.wo.weight": (dim, dim),
            f"layers.{i}.feed_forward.w1.weight": (ffn, dim),
            f"layers.{i}.feed_forward.w3.weight": (ffn, dim),
            f"layers.{i}.feed_forward.w2.weight": (dim, ffn),
            f"layers.{i}.attention_norm.weight": (dim,),
            f"layers.{i}.ffn_norm.weight": (dim,),
        }
    return shapes | {"norm.weight": (dim,), "output.weight": (16384, dim)}


def llama(prefix: str, dim: int, layers: int, ffn: int, rows: int, kv: int, qk_norm: int = 0) -> Shapes:
    """Hugging Face's Llama with heads of 128; `kv` is the width of keys, `qk_norm` the rows of norms of
    queries and keys."""
    shapes: Shapes = {f"{prefix}embed_tokens.weight": (rows, dim)}
    for i in range(layers):
        layer = f"{prefix}layers.{i}."
        shapes |= {
            f"{layer}self_attn.q_proj.weight": (dim, dim),
            f"{layer}self_attn.k_proj.weight": (kv, dim),
            f"{layer}self_attn.v_proj.weight": (kv, dim),
            f"{layer}self_attn.o_proj.weight": (dim, dim),
            f"{layer}mlp.gate_proj.weight": (ffn, dim),
            f"{layer}mlp.up_proj.weight": (ffn, dim),
            f"{layer}mlp.down_proj.weight": (dim, ffn),
            f"{layer}input_layernorm.weight": (dim,),
            f"{layer}post_attention_layernorm.weight": (dim,),
        }
        if qk_norm:
            for name in ("q_norm.weight", "q_norm.bias", "k_norm.weight", "k_norm.bias"):
                shapes[f"{layer}self_attn.{name}"] = (qk_norm, 128)
    return shapes | {f"{prefix}norm.weight": (dim,)}


def janus(dim: int, layers: int, ffn: int) -> Shapes:
    """The original layout (bfloat16), the vision tower as one tensor of its size; without image tokenizer."""
    return llama("language_model.model.", dim, layers, ffn, 102400, dim) | {
        "language_model.lm_head.weight": (102400, dim),
        "vision_model.whole": (304, 10**6),
        "gen_embed.weight": (16384, 8),
        "gen_aligner.layers.0.weight": (dim, 8),
        "gen_aligner.layers.0.bias": (dim,),
        "gen_aligner.layers.2.weight": (dim, dim),
        "gen_aligner.layers.2.bias": (dim,),
        "gen_head.output_mlp_projector.weight": (dim, dim),
        "gen_head.output_mlp_projector.bias": (dim,),
        "gen_head.vision_head.weight": (16384, dim),
        "gen_head.vision_head.bias": (16384,),
    }


def lumina() -> Shapes:
    """Lumina-mGPT 7B (bfloat16)."""
    return llama("model.", 4096, 32, 11008, 65536, 4096, qk_norm=1) | {"lm_head.weight": (65536, 4096)}


def emu3() -> Shapes:
    """Emu3-Gen (published in float32)."""
    return llama("model.", 4096, 32, 14336, 184622, 1024) | {"lm_head.weight": (184622, 4096)}


def janus_texts(folder: Path, dim: int) -> None:
    tokens = {"<｜begin▁of▁sentence｜>": 60, "<｜▁pad▁｜>": 61, "<begin_of_image>": 62}
    write_tokenizer(folder / "tokenizer.json", WORDS, tokens, 200)
    config = {"language_config": {"num_attention_heads": dim // 128}}
    (folder / "config.json").write_text(json.dumps(config))


def lumina_texts(folder: Path) -> None:
    tokens = {"<eoss>": 8196, "<racm3:break>": 8197, "<reserved08706>": 8710, "<reserved08799>": 8803}
    tokens |= {f"<reserved{8800 + side:05d}>": 8804 + side for side in range(140)}
    tokens |= {f"IMGIMG{''.join(chr(65 + int(d)) for d in str(code))}Z": 4 + code for code in range(8192)}
    write_tokenizer(folder / "tokenizer.json", {"red": 9000}, BASIC | tokens, 9001)
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": 32, "mask_image_logits": False}))


def emu3_texts(folder: Path) -> None:
    tokens = {"<|extra_203|>": 200, "<|extra_200|>": 201, "<|image start|>": 202, "<|image token|>": 203}
    tokens |= {f"<|visual token {code:06d}|>": 300 + code for code in range(32768)}
    write_tokenizer(folder / "tokenizer.json", WORDS, tokens, 33100)
    (folder / "config.json").write_text(json.dumps({"model_type": "Emu3", "num_attention_heads": 32}))


def write_shards(
    shapes: Mapping[str, tuple[int, ...]], folder: Path, kind: str, parts: int, random: bool
) -> None:
    """`model.safetensors`, or so many parts of about equal size with their index."""
    total, groups, filled = sum(map(size, shapes.values())), [[] for _ in range(parts)], 0
    for name, shape in shapes.items():
        groups[min(parts - 1, filled * parts // total)].append(name)
        filled += size(shape)
    index = {}
    for number, names in enumerate(groups, 1):
        file = "model.safetensors" if parts == 1 else f"model-{number:05d}-of-{parts:05d}.safetensors"
        write_file({name: shapes[name] for name in names}, folder / file, kind, random)
        index |= {name: file for name in names}
    if parts > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def write_file(shapes: Mapping[str, tuple[int, ...]], path: Path, kind: str, random: bool) -> None:
    header, offset = {}, 0
    for name, shape in shapes.items():
        end = offset + size(shape) * BYTES[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        if random:
            for tensor in tensors(shapes.values(), kind):
                file.write(memoryview(tensor.view(torch.uint8).numpy()))
        file.truncate(8 + len(text) + offset)


def write_torch(shapes: Mapping[str, tuple[int, ...]], path: Path, kind: str) -> None:
    values = (t.view(shape) for t, shape in zip(tensors(shapes.values(), kind), shapes.values(), strict=True))
    torch.save({"model": dict(zip(shapes, values, strict=True))}, path)


def tensors(shapes: Iterable[tuple[int, ...]], kind: str) -> Iterable[torch.Tensor]:
    """Random numbers, flat: normal with deviation 0.02; norms are 1."""
    generator = torch.Generator().manual_seed(0)
    dtype = {"F32": torch.float32, "BF16": torch.bfloat16}[kind]
    for shape in shapes:
        drawn = torch.ones(shape) if len(shape) == 1 else 0.02 * torch.randn(shape, generator=generator)
        yield drawn.to(dtype).flatten()


def size(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


# Name -> (shapes, what lies beside the weights, type as published, parts as published)
Texts = Callable[[Path], None]
RELEASED: dict[str, tuple[Shapes, Texts, str, int]] = {
    "LlamaGen-XL c2i": (llamagen_c2i(1280, 36, 3584), lambda folder: None, "F32", 1),
    "Janus-Pro-1B": (janus(2048, 24, 5632), lambda folder: janus_texts(folder, 2048), "BF16", 1),
    "Janus-Pro-7B": (janus(4096, 30, 11008), lambda folder: janus_texts(folder, 4096), "BF16", 2),
    "Lumina-mGPT 7B": (lumina(), lumina_texts, "BF16", 2),
    "Emu3-Gen 8B": (emu3(), emu3_texts, "F32", 7),
}
