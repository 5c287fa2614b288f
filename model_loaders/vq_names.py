"""How the files of VQ networks spell the names of our modules, and the sizes that their tensors tell.

Ours are LlamaGen's. The older spelling (taming-transformers': Chameleon, MoVQ, Emu3) counts the decoder's
levels from the highest resolution; transformers has a variant of it for Janus, which counts from the lowest,
and one for Emu3 with its own names for attention.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .checkpoint import Checkpoint
from .errors import CheckpointError
from .vq_norms import GROUPS
from .vqgan import Half, Level

CODEBOOK = "quantize.embedding.weight"
MID = ("block_1", "attn_1", "block_2")


@dataclass(frozen=True)
class Names:
    """Our names -> the file's. `prefix` is what a model that contains the network puts before its names."""

    checkpoint: Checkpoint
    prefix: str
    spell: Callable[[str], str]
    rising: bool = True  # whether the decoder's levels are counted from the lowest resolution, as ours

    def __call__(self, name: str) -> str:
        return self.prefix + self.spell(name)

    def __contains__(self, name: str) -> bool:
        return self(name) in self.checkpoint

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        return self.checkpoint.shape(self(name), rank)

    def count(self, name: str) -> int:
        """How many of `name`, with {} for a number from 0, there are without a gap."""
        number = 0
        while name.format(number) in self:
            number += 1
        return number


def find_names(checkpoint: Checkpoint) -> Names | None:
    """The spelling of the VQ network in the file, alone or within a model; None where there is none."""
    for name in checkpoint.tensors:
        prefix = name.removesuffix(CODEBOOK)
        if prefix == name or (prefix and not prefix.endswith(".")):
            continue
        if any(
            f"{prefix}{side}.conv_blocks.0.res.0.conv1.weight" in checkpoint
            for side in ("encoder", "decoder")
        ):
            return Names(checkpoint, prefix, str)
        for up in ("up", "up_block.up"):
            levels = checkpoint.count(f"{prefix}decoder.{up}.")
            rising = levels > 1 and f"{prefix}decoder.{up}.0.upsample.conv.weight" in checkpoint
            if levels or f"{prefix}encoder.{up.replace('up', 'down')}.0.block.0.conv1.weight" in checkpoint:
                spell = partial(taming if up == "up" else emu3_hf, falling=0 if rising else levels)
                return Names(checkpoint, prefix, spell, rising)
    return None


def taming(name: str, falling: int) -> str:
    """`falling`: levels of a decoder that counts them from the highest resolution, 0 for one that does
    not."""
    parts = name.split(".")
    if parts[1] == "mid":
        parts[2] = MID[int(parts[2])]
    elif parts[1] == "conv_blocks":
        parts[1] = {"encoder": "down", "decoder": "up"}[parts[0]]
        if falling and parts[0] == "decoder":
            parts[2] = str(falling - 1 - int(parts[2]))
        if parts[3] == "res":
            parts[3] = "block"
    return ".".join(parts)


def emu3_hf(name: str, falling: int) -> str:
    name = taming(name, falling)
    for ours, theirs in (
        (r"^(\w+)\.(up|down)\.", r"\1.\2_block.\2."),
        (r"\.mid\.", ".middle_block."),
        (r"\.attn_1\.norm\.", ".attn_norm."),
        (r"\.attn\.(\d+)\.norm\.", r".attn_norms.\1."),
        (r"\.(attn_1|attn\.\d+)\.([qkv])\.", r".\1.\2_proj."),
        (r"\.(attn_1|attn\.\d+)\.proj_out\.", r".\1.out_proj."),
    ):
        name = re.sub(ours, theirs, name)
    return name


def read_half(names: Names, side: str) -> Half:
    """The sizes of the encoder or the decoder (`side`)."""
    width, width_in = names.shape(f"{side}.conv_in.weight", 4)[:2]
    resample = {"encoder": "downsample", "decoder": "upsample"}[side]
    levels = []
    for number in range(max(1, names.count(f"{side}.conv_blocks.{{}}.res.0.conv1.weight"))):
        prefix = f"{side}.conv_blocks.{number}."
        blocks = range(max(1, names.count(f"{prefix}res.{{}}.conv1.weight")))
        levels.append(
            Level(
                widths=tuple(names.shape(f"{prefix}res.{b}.conv1.weight", 4)[0] for b in blocks),
                attention=f"{prefix}attn.0.q.weight" in names,
                resample=f"{prefix}{resample}.conv.weight" in names,
            )
        )
    odd = [w for w in (width, *(w for level in levels for w in level.widths)) if w < 1 or w % GROUPS]
    if odd:
        raise CheckpointError(
            f"{names.checkpoint.description}: {odd[0]} channels do not divide into {GROUPS} groups"
        )
    guide = f"{side}.mid.0.norm1.conv_y.weight"
    return Half(
        width_in,
        width,
        names.shape(f"{side}.conv_out.weight", 4)[0],
        tuple(levels),
        names.shape(guide, 4)[1] if guide in names else 0,
    )
