"""The built-in model: emoji and flags from a few words, 16 x 16 tokens, small enough to ship in the package.

LlamaGen's blocks, with a prefix of word embeddings: the style word (`<flat>`, `<flag>`, …), then the words of
the name, padded with a visible `<pad>`. Prefix positions are not rotated. The summed prefix, through one
matrix, is added to the embedding of every input. No words at all make `<null>`, which guidance compares
with: with an empty prompt guidance changes nothing. A style is compared with the same words without one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...decoding.grid import TokenGrid
from ..checkpoint import Checkpoint
from ..denoiser import Denoiser, DenoiserConfig
from ..errors import CheckpointError
from ..image_model import ImageModel, SamplingDefaults
from ..image_transformer import ImageTransformer, Prompt, PromptRows, check_family, fill
from ..rotary import Turns, grid_rotation
from ..transformer import TransformerConfig
from .blocks import read_config, transformer_names
from .builtin_names import Names
from .builtin_prompt import FLAG, NULL, PAD, Manner, read_prompt

FAMILY = "built-in"
MOST = 4096  # of any number in the metadata: heads, tokens a side, words of a prompt, base, noise levels


class BuiltinTransformer(ImageTransformer):
    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: int,
        words: int,
        prefix: int,
        rope_base: float,
        operations: Any,
        **factory: Any,
    ) -> None:
        super().__init__(config, vocabulary, operations, **factory)
        self.prefix = prefix
        self.rope_base = rope_base
        self.text_embeddings = operations.Embedding(words, config.dim, **factory)
        # A table of one row a position, so that the host can move it as it does any other module.
        self.text_positions = operations.Embedding(prefix, config.dim, **factory)
        self.text_global = operations.Linear(config.dim, config.dim, bias=False, **factory)

    def prompt_rows(
        self,
        prompts: Sequence[Prompt],
        grid: TokenGrid,
        guided: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> PromptRows:
        check_family(prompts, FAMILY)
        ids = torch.stack([prompt.tensors["ids"] for prompt in prompts])  # [B, T]
        if guided:
            ids = torch.cat([ids, torch.stack([prompt.tensors["away"] for prompt in prompts])])
        ids = ids.to(device)
        places = torch.arange(self.prefix, device=device)
        x = (self.text_embeddings(ids) + self.text_positions(places)).to(dtype)  # [R, T, dim]
        summed = (x * (ids != 0)[..., None]).sum(1, keepdim=True)
        # As many equal rows as the prefix has: see STEP in target.py.
        constant = self.text_global(summed.expand_as(x))
        return PromptRows(x + constant, torch.ones_like(ids, dtype=torch.bool), constant[:, :1])

    def turns(self, grid: TokenGrid, visible: Tensor, dtype: torch.dtype) -> Turns:
        cells = grid_rotation(grid, self.transformer.config.head_dim, self.rope_base, dtype)
        prompt = torch.ones(1, visible.shape[1], cells.shape[1], dtype=cells.dtype)
        return Turns(prompt, cells)


class BuiltinModel(ImageModel):
    family = FAMILY
    tokenizer_kind = "built-in"

    def __init__(
        self,
        transformer: BuiltinTransformer,
        side: int,
        words: Mapping[str, int],
        manner: Manner,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(
            name="the built-in model",
            transformer=transformer,
            dtype=dtype,
            grids=[TokenGrid(side, side)],
            defaults=SamplingDefaults(guidance=1.5),
            prefix=transformer.prefix,
        )
        self.words = words
        self.manner = manner

    def encode_prompt(self, text: str) -> Prompt:
        reading = read_prompt(text, self.words, self.manner, self.prefix)
        away = self.manner.guided_away_from(reading.names)
        rows = {"ids": self._ids(reading.names), "away": self._ids(away)}
        return Prompt(FAMILY, text, rows, tuple(reading.notes))

    def _ids(self, names: Sequence[str]) -> Tensor:
        """[prefix] int64, padded."""
        ids = torch.full((self.prefix,), self.words[PAD], dtype=torch.int64)
        ids[: len(names)] = torch.tensor([self.words[name] for name in names])
        return ids


def recognises(checkpoint: Checkpoint) -> bool:
    return "text_global.weight" in checkpoint and "words" in checkpoint.metadata


def load(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    operations: Any,
    text_encoder: str | os.PathLike[str] | None,
) -> BuiltinModel:
    settings, words = (read_metadata(checkpoint, key) for key in ("config", "words"))
    heads, side, prefix = (number(checkpoint, settings, key, int) for key in ("n_heads", "grid", "prefix"))
    base, eps = (number(checkpoint, settings, key, int | float) for key in ("rope_base", "norm_eps"))
    vocabulary, dim = checkpoint.shape("tok_embeddings.weight", 2)
    count, _ = checkpoint.shape("text_embeddings.weight", 2)
    if not {PAD, NULL, FLAG} <= set(words) or not all(
        type(id_) is int and 0 <= id_ < count for id_ in words.values()
    ):
        raise CheckpointError(f"{checkpoint.description}: its list of words is damaged")
    if dim % heads or dim // heads % 4:
        raise CheckpointError(f"{checkpoint.description}: {heads} heads do not divide {dim} channels")
    config = read_config(checkpoint, dim // heads, eps)
    network = BuiltinTransformer(
        config,
        vocabulary,
        count,
        prefix,
        base,
        operations,
        device=torch.device("meta"),
        dtype=dtype,
    )
    names = transformer_names(config.layers) | {
        "text_embeddings.weight": "text_embeddings.weight",
        "text_positions.weight": "text_positions",
        "text_global.weight": "text_global.weight",
    }
    denoiser = read_denoiser(checkpoint, dim)
    if denoiser is not None:
        network.denoiser = Denoiser(denoiser, operations, device=torch.device("meta"), dtype=dtype)
        names |= {f"denoiser.{name}": f"denoiser.{name}" for name in network.denoiser.state_dict()}
    fill(network, checkpoint, names, device=device, dtype=dtype)
    return BuiltinModel(network, side, words, read_manner(checkpoint, words), dtype)


def read_manner(checkpoint: Checkpoint, words: Mapping[str, int]) -> Manner:
    """How prompts are read, from the file."""
    said = read_metadata(checkpoint, "prompts")
    any_style, fillers = said.get("any"), said.get("fillers")
    tables = [said.get(key) for key in ("styles", "synonyms")]
    names = [said.get(key, []) for key in ("names", "other names")]
    sound = isinstance(any_style, str) and all(isinstance(table, dict) for table in tables)
    sound = sound and all(isinstance(listed, list) for listed in (fillers, *names))
    sound = sound and all(isinstance(said, str) for table in tables for said in table.values())
    sound = sound and all(isinstance(one, str) for listed in (fillers, *names) for one in listed)
    sound = sound and all(
        one.split() and set(one.split()) <= set(words) for listed in names for one in listed
    )
    if not sound or not {any_style, *tables[0].values(), *tables[1].values()} <= set(words):
        raise CheckpointError(f"{checkpoint.description}: its metadata garbles prompts")
    return Manner(any_style, tables[0], frozenset(fillers), tables[1], Names(*map(tuple, names)))


def read_denoiser(checkpoint: Checkpoint, dim: int) -> DenoiserConfig | None:
    """What the file says of its denoiser, None where it has none."""
    if "denoising" not in checkpoint.metadata:
        return None
    said = read_metadata(checkpoint, "denoising")
    smallest, largest = (number(checkpoint, said, key, int | float) for key in ("smallest", "largest"))
    if not smallest < largest:
        raise CheckpointError(f"{checkpoint.description}: its metadata garbles denoising")
    hidden, _ = checkpoint.shape("denoiser.inner.weight", 2)
    return DenoiserConfig(dim, hidden, smallest, largest)


def read_metadata(checkpoint: Checkpoint, key: str) -> dict[str, Any]:
    try:
        value = json.loads(checkpoint.metadata[key])
    except (KeyError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{checkpoint.description}: its metadata lacks or garbles {key}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{checkpoint.description}: its metadata garbles {key}")
    return value


def number(checkpoint: Checkpoint, settings: dict[str, Any], key: str, kind: Any) -> Any:
    value = settings.get(key)
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value <= MOST:
        raise CheckpointError(f"{checkpoint.description}: its metadata has no usable {key}: {value!r}")
    return value
