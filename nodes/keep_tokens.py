"""Keep Rows and Token Mask: which tokens of a picture stay, and which Generate Image Tokens draws anew."""

from __future__ import annotations

from comfy_api.latest import io
from torch import Tensor

from . import host, sockets
from .errors import explained
from .fixed_tokens import below_row, from_first, given_words, masked_cells, only_picture, opened
from .inputs import check_wires, one_of
from .run_settings import MOST_PICTURES, MOST_SIDE
from .values import TokenGridValue

CATEGORY = "Jacobi AR/tokens"
EXACT_MODE, APPROXIMATE_MODE = "from the first masked token on (exact)", "masked cells only (approximate)"
MODES = [EXACT_MODE, APPROXIMATE_MODE]


def tokens_input() -> io.Custom.Input:
    return sockets.Tokens.Input(
        "tokens",
        tooltip="The picture to start from: from Generate Image Tokens, Load Token Grid or Encode Image to "
        "Tokens.",
    )


def picture_input() -> io.Int.Input:
    return io.Int.Input(
        "picture",
        default=0,
        min=0,
        max=MOST_PICTURES,
        tooltip="Which picture of a batch, counted from 1. 0 (default): all of them; then batch_size of "
        "Generate Image Tokens has to be as many.",
    )


def fixed_output() -> io.Custom.Output:
    return sockets.Tokens.Output(
        display_name="fixed tokens",
        tooltip="The tokens that stay; the rest is open. For fixed_tokens of Generate Image Tokens.",
    )


def on_wire(tokens: TokenGridValue) -> io.NodeOutput:
    """The tokens, with what is kept in words on the node."""
    text = f"kept: {given_words(tokens.tokens[0]) or 'nothing'}"
    if tokens.pictures > 1:
        text += f" (picture 1 of {tokens.pictures})"
    host.show_text(text)
    return io.NodeOutput(tokens, ui={"text": (text,)})


class JacobiARKeepRows(io.ComfyNode):
    NAME = "Keep Rows"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARKeepRows",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Keeps the upper rows of a picture; Generate Image Tokens draws everything below "
            "them anew. Exact: the new rows come from the model's own distribution given the kept ones, "
            "just as if it had drawn those itself. With the seed, prompt and settings of the kept picture "
            "itself the same rows come again, so choose another seed.",
            inputs=[
                tokens_input(),
                io.Int.Input(
                    "rows",
                    default=8,
                    min=0,
                    max=MOST_SIDE - 1,
                    tooltip="So many rows of tokens stay, counted from the top (default 8; at most one "
                    "less than the picture has). The built-in model's pictures have 16 rows. 0 keeps "
                    "nothing.",
                ),
                picture_input(),
            ],
            outputs=[fixed_output()],
        )

    @classmethod
    def execute(cls, tokens: TokenGridValue, rows: int, picture: int) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(tokens=tokens)
            chosen = only_picture(tokens, picture)
            return on_wire(opened(chosen, below_row(chosen.tokens.shape, rows)))


class JacobiARTokenMask(io.ComfyNode):
    NAME = "Token Mask"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARTokenMask",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Opens the tokens under a mask, for Generate Image Tokens to draw anew. The model "
            "draws from the top left, row by row, and sees only what lies before. So everything from the "
            "first masked token on drawn anew is exact; only the masked cells is approximate: they cannot "
            "take the kept tokens behind them into account, and seams may show.",
            inputs=[
                tokens_input(),
                io.Mask.Input(
                    "mask",
                    tooltip="Where to draw anew, of any size: it is laid over the picture. A token that it "
                    "touches anywhere is drawn anew. One mask serves all pictures, or give one a picture.",
                ),
                io.Combo.Input(
                    "mode",
                    options=MODES,
                    default=EXACT_MODE,
                    tooltip=f'"{EXACT_MODE}" (default): also draws everything behind the first masked token, '
                    "to the right of it and below; the model's own distribution. "
                    f'"{APPROXIMATE_MODE}": keeps all the rest; look at the edges.',
                ),
                picture_input(),
            ],
            outputs=[fixed_output()],
        )

    @classmethod
    def execute(cls, tokens: TokenGridValue, mask: Tensor, mode: str, picture: int) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(tokens=tokens, mask=mask)
            one_of("mode", mode, MODES)
            chosen = only_picture(tokens, picture)
            cells = masked_cells(mask, chosen.tokens.shape)
            return on_wire(opened(chosen, from_first(cells) if mode == EXACT_MODE else cells))
