"""Compare Token Grids: which tokens of two pictures differ."""

from __future__ import annotations

import torch
from comfy_api.latest import io
from torch import Tensor

from . import host, sockets
from .decode_tokens import MEMORY_ADVICE, decode_pictures
from .errors import explained
from .inputs import check_wires
from .pictures import to_image, to_pixels
from .previews import GREY, open_pixels, without_holes
from .token_difference import GridDifference, sheet, table
from .values import TokenGridValue, TokenizerValue


class JacobiARCompareTokens(io.ComfyNode):
    NAME = "Compare Token Grids"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARCompareTokens",
            display_name=cls.NAME,
            category="Jacobi AR/analysis",
            description="Compares two token grids token by token: both pictures, and a map of where they "
            "differ, with a frame around the first difference in the order in which the model draws.",
            inputs=[
                sockets.Tokenizer.Input(
                    "tokenizer", tooltip="The image tokenizer of both, from Load AR Image Model."
                ),
                sockets.Tokens.Input("tokens", tooltip="The pictures to compare."),
                sockets.Tokens.Input(
                    "other_tokens", tooltip="What to compare them with: as many pictures, or one for all."
                ),
            ],
            outputs=[
                io.Image.Output(
                    display_name="image",
                    tooltip="A sheet for each pair of pictures: the one, the other, and where they differ "
                    "(orange).",
                ),
                io.Float.Output(
                    display_name="equal share", tooltip="Share of equal tokens, 0 to 1, over all pictures."
                ),
                io.String.Output(display_name="table", tooltip="A line for each picture, in Markdown."),
            ],
        )

    @classmethod
    def execute(
        cls, tokenizer: TokenizerValue, tokens: TokenGridValue, other_tokens: TokenGridValue
    ) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            check_wires(tokenizer=tokenizer, tokens=tokens, other_tokens=other_tokens)
            for value in (tokens, other_tokens):
                value.check_tokenizer(tokenizer.identity)
            one, other = paired(tokens.tokens, other_tokens.tokens)
            differences = [GridDifference(differs.numpy()) for differs in one != other]
            pictures = [drawn(tokenizer, grids) for grids in (one, other)]
        sheets = [
            to_pixels(sheet(difference, to_image(first), to_image(second)))
            for difference, first, second in zip(differences, *pictures, strict=True)
        ]
        share = sum(difference.equal_share for difference in differences) / len(differences)
        text = table(differences)
        host.show_text(text if len(differences) > 1 else differences[0].words())
        return io.NodeOutput(torch.cat(sheets), share, text, ui={"text": (text,)})


def paired(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both as [B, rows, cols]; one picture is compared with each of the other side's."""
    if one.shape[1:] != other.shape[1:]:
        sizes = " and ".join(f"{grid.shape[1]} x {grid.shape[2]}" for grid in (one, other))
        raise ValueError(
            f"the pictures have different sizes, {sizes} tokens, so there is nothing to compare."
        )
    if len(one) != len(other) and 1 not in (len(one), len(other)):
        raise ValueError(
            f"there are {len(one)} and {len(other)} pictures: give as many on both sides, or one on one of "
            "them."
        )
    batch = max(len(one), len(other))
    return one.expand(batch, -1, -1), other.expand(batch, -1, -1)


def drawn(
    tokenizer: TokenizerValue,
    grids: Tensor,  # [B, rows, cols], -1 where a cell is open
) -> Tensor:
    """The pictures, open cells grey: [B, height, width, 3] float 0..1."""
    pixels = decode_pictures(tokenizer, without_holes(grids)).cpu()
    return torch.where(open_pixels(grids, pixels.shape[1:3]), GREY, pixels)
