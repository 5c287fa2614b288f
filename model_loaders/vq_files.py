"""VQ networks in files: LlamaGen's, Janus', Chameleon's and both MoVQ, alone or within a model's own file."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .checkpoint import Checkpoint
from .companions import PICTURES, where_from
from .errors import CheckpointError
from .image_tokenizer import ImageTokenizer, Operations
from .movq_video import VideoVQ, read_times
from .strict import Part, Source, assign
from .vq_names import CODEBOOK, Names, find_names, read_half
from .vqgan import VQGAN, Half

USAGE = "quantize.codebook_used"  # counts use in training
OWN = ("encoder.", "decoder.", "quant_conv.", "post_quant_conv.")
JANUS = "gen_vision_model."  # what puts LlamaGen's network into Janus' file


def recognises(checkpoint: Checkpoint) -> bool:
    return find_names(checkpoint) is not None


def load(
    checkpoint: Checkpoint, *, device: torch.device | str, dtype: torch.dtype, operations: Operations
) -> ImageTokenizer:
    """Only the network's tensors are read where the file holds a whole model."""
    names = find_names(checkpoint)
    if "decoder.conv_in.weight" not in names:
        raise CheckpointError(
            f"{checkpoint.description} holds the encoder of an image tokenizer and no decoder, so it cannot "
            "make pictures (Chameleon was published so). Use vqgan.ckpt, which has both. "
            f"{where_from('Anole', PICTURES)}"
        )
    can_encode = "encoder.conv_in.weight" in names
    decoder = read_half(names, "decoder")
    encoder = read_half(names, "encoder") if can_encode else None
    if encoder is not None and encoder.factor != decoder.factor:
        raise CheckpointError(
            f"{checkpoint.description}: the decoder grows by {decoder.factor}, the encoder shrinks "
            f"{encoder.factor}"
        )
    if decoder.width_out != 3 or (encoder is not None and encoder.width_in != 3):
        raise CheckpointError(
            f"{checkpoint.description}: the pictures of this network do not have 3 channels"
        )
    kind, normalised = _kind(names, decoder)
    module = _network(names, kind, encoder, decoder, operations)
    assign(
        module,
        checkpoint,
        {name: _source(names, name) for name in module.state_dict()},
        device=device,
        dtype=dtype,
        ignore=_left_out(names, can_encode),
    )
    codebook = checkpoint.read(names(CODEBOOK)).float()
    return ImageTokenizer(
        kind=kind,
        # A copy, as `assign` makes: the file may go while the tokenizer lives.
        codebook=F.normalize(codebook, dim=-1) if normalised else codebook.clone(),
        factor=decoder.factor,
        module=module.eval(),
        dtype=dtype,
        normalised=normalised,
        can_encode=can_encode,
        name=checkpoint.description,
        width=decoder.levels[-1].widths[-1],
    )


def _kind(names: Names, decoder: Half) -> tuple[str, bool]:
    """Whose tokens, and whether only the direction of a codebook row counts."""
    if decoder.guide:
        return "movq-emu3" if "decoder.time_conv.0.conv.conv.weight" in names else "movq-lumina2", False
    if names.spell is str:
        return "janus" if names.prefix.endswith(JANUS) else "llamagen", True
    return ("janus", True) if names.rising else ("chameleon", False)


def _network(names: Names, kind: str, encoder: Half | None, decoder: Half, ops: Operations) -> nn.Module:
    _, code = names.shape(CODEBOOK, 2)
    with torch.device("meta"):
        if kind == "movq-emu3":
            return VideoVQ(read_times(names, encoder is not None), encoder, decoder, ops)
        return VQGAN(code, encoder, decoder, ops)


def _source(names: Names, name: str) -> Source:
    """The tensor of the file; transformers keeps Emu3's 1 x 1 convolutions of attention as linear layers."""
    source = names(name)
    if "_proj." in source and name.endswith(".weight"):
        return Part(source, change=lambda weight: weight[:, :, None, None])
    return source


def _left_out(names: Names, can_encode: bool) -> Callable[[str], bool]:
    """Tensors that need no place: of the model around the network, of its training, the codebook."""
    known = {names.prefix + CODEBOOK, names.prefix + USAGE}
    own = tuple(names.prefix + part for part in OWN)
    unused = () if can_encode else (f"{names.prefix}quant_conv.",)

    def left_out(name: str) -> bool:
        if name in known or name.startswith(unused):
            return True
        # LlamaGen's files hold nothing else; the others were saved with discriminator and averages.
        return not name.startswith(own if names.spell is not str else names.prefix)

    return left_out
