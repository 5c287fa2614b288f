"""Decode Image Tokens: the grid of tokens to a picture."""

from __future__ import annotations

import torch
from comfy_api.latest import io
from torch import Tensor

from . import host, sockets
from .errors import explained
from .inputs import check_wires
from .values import TokenGridValue, TokenizerValue

MEMORY_ADVICE = (
    "Make fewer rows and columns, close other programs that use the GPU, or start ComfyUI with --lowvram."
)


class JacobiARDecodeTokens(io.ComfyNode):
    NAME = "Decode Image Tokens"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecodeTokens",
            display_name=cls.NAME,
            category="Jacobi AR/tokens",
            description="Decodes image tokens to pixels with the image tokenizer that the model was "
            "trained on, always in float32.",
            inputs=[
                sockets.Tokenizer.Input(
                    "tokenizer",
                    tooltip="The image tokenizer from Load AR Image Model. It must be the one that the "
                    "tokens were made for.",
                ),
                sockets.Tokens.Input(
                    "tokens",
                    tooltip="Image tokens from Generate Image Tokens, Load Token Grid or Encode Image to "
                    "Tokens.",
                ),
            ],
            outputs=[
                io.Image.Output(
                    display_name="image",
                    tooltip="The pictures, one a batch entry, in ComfyUI's usual form: save, preview or "
                    "upscale them.",
                ),
            ],
        )

    @classmethod
    def execute(cls, tokenizer: TokenizerValue, tokens: TokenGridValue) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            check_wires(tokenizer=tokenizer, tokens=tokens)
            tokens.check_tokenizer(tokenizer.identity)
            tokens.check_complete()
            return io.NodeOutput(decode_pictures(tokenizer, tokens.tokens))


def decode_pictures(
    tokenizer: TokenizerValue,
    tokens: Tensor,  # [B, rows, cols]
) -> Tensor:
    """[B, height, width, 3] float32 0..1.

    One picture at a time: it bounds the memory, and a picture of a batch then equals the same picture made
    alone.
    """
    pictures, rows, cols = tokens.shape
    strips = bring_tokenizer(tokenizer, rows * cols)
    progress = host.Progress(pictures)
    images = []
    for index in range(pictures):
        host.stop_if_interrupted()
        images.append(host.to_output(tokenizer.decode(tokens[index : index + 1], strips)))
        progress.update(index + 1)
    return torch.cat(images)


def bring_tokenizer(tokenizer: TokenizerValue, cells: int) -> bool:
    """Brings it to its device. Whether pictures of so many tokens must go in strips there for want of memory:
    said before, because some systems do not refuse memory but lend slow one."""
    needed = tokenizer.tokenizer.picture_bytes(cells)
    host.load_residents([tokenizer.resident], needed)
    return host.is_short_of(tokenizer.resident.device, needed)
