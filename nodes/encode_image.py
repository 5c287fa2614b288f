"""Encode Image to Tokens: a picture of any origin to the tokens that come nearest to it."""

from __future__ import annotations

import torch
from comfy_api.latest import io
from torch import Tensor

from . import host, sockets
from .decode_tokens import MEMORY_ADVICE, bring_tokenizer
from .errors import explained
from .inputs import check_wires, one_of, whole_number
from .picture_facts import ENCODED, PictureFacts
from .run_settings import MOST_SIDE
from .values import TokenGridValue, TokenizerValue

NONE, CROP, STRETCH = "none", "centre crop", "resize"
FITS = [CROP, STRETCH, NONE]


class JacobiAREncodeImage(io.ComfyNode):
    NAME = "Encode Image to Tokens"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiAREncodeImage",
            display_name=cls.NAME,
            category="Jacobi AR/tokens",
            description="Turns a picture into tokens: to keep a part of it and let the model draw the rest "
            "(Keep Rows, Token Mask), or to see what the image tokenizer makes of it (Decode Image "
            "Tokens). Tokens lose detail; pictures unlike those that the tokenizer was trained on lose "
            "much.",
            inputs=[
                sockets.Tokenizer.Input("tokenizer", tooltip="The image tokenizer from Load AR Image Model."),
                io.Image.Input("image", tooltip="The picture, or a batch of them."),
                io.Combo.Input(
                    "fit",
                    options=FITS,
                    default=CROP,
                    tooltip='A token stands for a square of pixels, so not every size goes. "centre crop" '
                    "(default): scales the picture to fill the grid and cuts off what stands over; "
                    '"resize": stretches it; "none": an error where the size does not fit.',
                ),
                io.Int.Input(
                    "rows",
                    default=0,
                    min=0,
                    max=MOST_SIDE,
                    tooltip="Rows of tokens to make. 0 (default): as many as the picture has room for. To "
                    "go on drawing it has to be a size that the model makes, such as 16 for the built-in "
                    "one.",
                ),
                io.Int.Input(
                    "columns",
                    default=0,
                    min=0,
                    max=MOST_SIDE,
                    tooltip="Tokens in a row. 0 (default): as many as the picture has room for.",
                ),
            ],
            outputs=[
                sockets.Tokens.Output(
                    display_name="tokens",
                    tooltip="The tokens, for Keep Rows, Token Mask, Decode Image Tokens or Save Token Grid.",
                ),
            ],
        )

    @classmethod
    def execute(
        cls, tokenizer: TokenizerValue, image: Tensor, fit: str, rows: int, columns: int
    ) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            check_wires(tokenizer=tokenizer, image=image)
            one_of("fit", fit, FITS)
            whole_number("rows", rows, 0, MOST_SIDE)
            whole_number("columns", columns, 0, MOST_SIDE)
            pictures = fitted(image, tokenizer.tokenizer.factor, fit, (rows, columns))
            tokens = encode_pictures(tokenizer, pictures)
        text = f"{len(tokens)} x {tokens.shape[1]} x {tokens.shape[2]} tokens (pictures, rows, columns)"
        host.show_text(text)
        facts = PictureFacts(ENCODED, rows=tokens.shape[1], columns=tokens.shape[2])
        value = TokenGridValue(tokens, tokenizer.identity, (facts,) * len(tokens))
        return io.NodeOutput(value, ui={"text": (text,)})


def fitted(
    image: Tensor,  # [B, height, width, 3 or more] float 0..1
    factor: int,  # pixels per token
    fit: str,
    grid: tuple[int, int],  # rows, columns; 0: as many as fit
) -> Tensor:
    """Pictures of a size that divides into tokens, [B, rows * factor, cols * factor, 3]."""
    if image.ndim != 4 or image.shape[-1] < 3 or not image.numel():
        raise ValueError(f"image must be [pictures, height, width, 3], got {tuple(image.shape)}.")
    image = image[..., :3]
    height, width = image.shape[1:3]
    rows, cols = grid[0] or max(height // factor, 1), grid[1] or max(width // factor, 1)
    wanted = (rows * factor, cols * factor)
    if (height, width) == wanted:
        return image
    if fit == NONE:
        raise ValueError(
            f"a picture of {width} x {height} pixels is no grid of {rows} x {cols} tokens (rows x columns) "
            f'of {factor} x {factor} pixels: that takes {wanted[1]} x {wanted[0]}. Choose the fit "{CROP}" '
            f'or "{STRETCH}", or scale it before.'
        )
    if not any(grid) and fit == CROP and min(height, width) >= factor:
        top, left = (height - wanted[0]) // 2, (width - wanted[1]) // 2
        return image[:, top : top + wanted[0], left : left + wanted[1]]  # no pixel is resampled
    return host.resized(image, *wanted, crop=fit == CROP)


def encode_pictures(
    tokenizer: TokenizerValue,
    pictures: Tensor,  # [B, height, width, 3] float 0..1
) -> Tensor:
    """[B, rows, cols] int64 on the CPU. One picture at a time, as in decoding."""
    factor = tokenizer.tokenizer.factor
    cells = pictures.shape[1] // factor * (pictures.shape[2] // factor)
    strips = bring_tokenizer(tokenizer, cells)
    progress, grids = host.Progress(len(pictures)), []
    for index, picture in enumerate(pictures.split(1)):
        host.stop_if_interrupted()
        pixels = picture.float().clamp(0, 1)
        grids.append(tokenizer.tokenizer.encode(pixels, tokenizer.resident.device, strips))
        progress.update(index + 1)
    return torch.cat(grids)
