"""A small random checkpoint of every family, loaded in float64, for tests that run all of them.

Every tensor outside the rows of image tokens is large, so that the language models, asked for any token,
would nearly always prefer one that ends the picture or is no image token at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.image_transformer import Prompt
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from safetensors.torch import save_file
from torch import Tensor

from .tiny_tokenizer import write_tokenizer

GOLDEN = Path(__file__).parent / "golden"
WIDTH, HEADS, HEAD_DIM, FFN, LAYERS = 32, 4, 8, 48, 2
CODES, FIRST, TOKENS = 16, 40, 160  # codebook, id of code 0, rows of the table
LARGE = (16384, 155000, 171385)  # the same of Lumina-mGPT 2.0, whose ids are fixed
WORDS = {word: 150 + number for number, word in enumerate(["red", "heart", "flag"])}
NAMED = {name: number for number, name in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}
# In the languages of all families: where texts and pictures begin and end, rows end, codes and sizes.
CHAMELEON = {"<eoss>": 60, "<racm3:break>": 61, "<reserved08706>": 62, "<reserved08799>": 63}
CHAMELEON |= {f"<reserved{8800 + side:05d}>": 64 + side for side in range(40)}
CHAMELEON |= {f"IMGIMG{''.join(chr(65 + int(d)) for d in str(c))}Z": FIRST + c for c in range(CODES)}
JANUS = {"<｜begin▁of▁sentence｜>": 60, "<｜▁pad▁｜>": 61, "<begin_of_image>": 62}
EMU3 = {"<|extra_203|>": 60, "<|extra_200|>": 61, "<|image start|>": 62, "<|image token|>": 63}
EMU3 |= {f"<|visual token {code:06d}|>": FIRST + code for code in range(CODES)}


class Weights(dict[str, Tensor]):
    """Random tensors by their names."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def add(self, name: str, *shape: int, scale: float = 0.4) -> None:
        self[name] = scale * torch.randn(*shape, generator=self.generator)

    def llama(
        self,
        prefix: str,
        head: str,
        kv_heads: int,
        qk_norm_rows: int = 0,
        sizes: tuple[int, int, int] = (CODES, FIRST, TOKENS),
    ) -> None:
        """A language model in Hugging Face's names."""
        codes, first, tokens = sizes
        self.add(f"{prefix}embed_tokens.weight", tokens, WIDTH)
        self.add(f"{prefix}norm.weight", WIDTH)
        for i in range(LAYERS):
            layer = f"{prefix}layers.{i}."
            for name, heads in (("q", HEADS), ("k", kv_heads), ("v", kv_heads)):
                self.add(f"{layer}self_attn.{name}_proj.weight", heads * HEAD_DIM, WIDTH)
            self.add(f"{layer}self_attn.o_proj.weight", WIDTH, HEADS * HEAD_DIM)
            for name in ("gate", "up"):
                self.add(f"{layer}mlp.{name}_proj.weight", FFN, WIDTH)
            self.add(f"{layer}mlp.down_proj.weight", WIDTH, FFN)
            for name in ("input_layernorm", "post_attention_layernorm"):
                self.add(f"{layer}{name}.weight", WIDTH)
            if qk_norm_rows:
                for name in ("q_norm.weight", "q_norm.bias", "k_norm.weight", "k_norm.bias"):
                    self.add(f"{layer}self_attn.{name}", qk_norm_rows, HEAD_DIM, scale=1.0)
        self.add(head, tokens, WIDTH, scale=40.0)
        self[head][first : first + codes] /= 100

    def save(
        self, folder: Path, config: Mapping[str, object], tokens: Mapping[str, int], size: int = TOKENS
    ) -> Path:
        folder.mkdir()
        save_file(dict(self), folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config))
        write_tokenizer(folder / "tokenizer.json", WORDS, tokens, size)
        return folder


def janus(folder: Path) -> Path:
    weights = Weights()
    weights.llama("language_model.model.", "language_model.lm_head.weight", HEADS)
    weights.add("gen_embed.weight", CODES, 8)
    weights.add("gen_aligner.layers.0.weight", WIDTH, 8)
    weights.add("gen_aligner.layers.2.weight", WIDTH, WIDTH)
    weights.add("gen_head.output_mlp_projector.weight", WIDTH, WIDTH)
    weights.add("gen_head.vision_head.weight", CODES, WIDTH)
    for name in [name for name in weights if name.startswith("gen_") and name != "gen_embed.weight"]:
        weights.add(name.replace(".weight", ".bias"), len(weights[name]))
    return weights.save(folder, {"language_config": {"num_attention_heads": HEADS}}, JANUS)


def lumina(folder: Path) -> Path:
    weights = Weights(1)
    weights.llama("model.", "lm_head.weight", 2, qk_norm_rows=1)
    return weights.save(folder, {"num_attention_heads": HEADS, "swin_norm": True}, NAMED | CHAMELEON)


def lumina2(folder: Path) -> Path:
    weights = Weights(4)
    weights.llama("model.", "lm_head.weight", HEADS, qk_norm_rows=1, sizes=LARGE)
    moved = {name: 151600 + number for name, number in CHAMELEON.items()}
    folder = weights.save(folder, {"num_attention_heads": HEADS}, NAMED | moved, 151720)
    (folder / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    return folder


def anole(folder: Path) -> Path:
    weights = Weights(2)
    weights.llama("model.", "lm_head.weight", HEADS, qk_norm_rows=HEADS)
    weights.add("model.vqmodel.decoder.conv_in.weight", 1)
    return weights.save(folder, {"num_attention_heads": HEADS}, NAMED | CHAMELEON)


def emu3(folder: Path) -> Path:
    weights = Weights(3)
    weights.llama("model.", "lm_head.weight", 2)
    return weights.save(folder, {"model_type": "Emu3", "num_attention_heads": HEADS}, NAMED | EMU3)


# Family -> its toys, by the name of the family's file.
TOYS: dict[str, dict[str, Callable[[Path], Path]]] = {
    "builtin": {"built-in": lambda folder: BUILTIN_MODEL},
    "llamagen": {
        "LlamaGen c2i": lambda folder: GOLDEN / "llamagen_c2i_tiny.pt",
        "LlamaGen t2i": lambda folder: GOLDEN / "llamagen_t2i_tiny.pt",
    },
    "janus": {"Janus": janus},
    "chameleon": {"Lumina-mGPT": lumina, "Anole": anole},
    "emu3": {"Emu3": emu3},
    "lumina2": {"Lumina-mGPT 2.0": lumina2},
}


def load_toy(name: str, folder: Path, dtype: torch.dtype = torch.float64) -> ImageModel:
    build = next(toys[name] for toys in TOYS.values() if name in toys)
    return load_image_model(build(folder / "toy"), device="cpu", dtype=dtype)


def toy_prompts(model: ImageModel, count: int) -> list[Prompt]:
    """Prompts of unequal length where the family has such."""
    if model.family == "LlamaGen c2i":
        return [model.encode_prompt(str(number)) for number in range(count)]
    if model.family == "LlamaGen t2i":
        draw = torch.Generator().manual_seed(0)
        lengths = (3, 40, 1)[:count]
        return [Prompt(model.family, "", {"features": torch.randn(n, 32, generator=draw)}) for n in lengths]
    return [model.encode_prompt(text) for text in ("red heart", "red " * 20 + "heart", "")[:count]]
