"""The decoder nodes that try several guesses side by side."""

from __future__ import annotations

from comfy_api.latest import io

from .. import decoding
from .decoder_parts import (
    CATEGORY,
    SAME_DISTRIBUTION,
    SAME_PICTURE,
    DecoderNode,
    decoder_output,
    draw_input,
    initialiser_input,
    window_input,
)


def tree_inputs() -> list[io.Input]:
    """The shape of the tree."""
    return [
        io.Int.Input(
            "siblings",
            default=3,
            min=2,
            max=8,
            tooltip="Guesses for each place of the tree (2 to 8, default 3; the paper has 4). With "
            "depth 2, 3 siblings add 10 places to a pass and 4 add 18: free on a GPU, not on a CPU.",
        ),
        io.Int.Input(
            "depth",
            default=2,
            min=1,
            max=4,
            tooltip="Places in a row that have siblings, counted from the next token (1 to 4, "
            "default 2). Every combination is tried, so the cost grows quickly: at most 400 extra "
            "places. The paper counts the last known token too: its 3 is 2 here.",
        ),
    ]


class JacobiARDecoderTree(DecoderNode):
    NAME = "Decoder: SJD with Tree Drafts (PAC)"
    make = staticmethod(decoding.sjd_tree)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderTree",
            display_name=cls.NAME,
            category=CATEGORY,
            description="SJD that tries several guesses for the next tokens at once: where the first one "
            "fails, another may stand in (SJD-PAC, arXiv 2603.18599). Helps where many tokens are likely, "
            "so most on open prompts; each pass computes more places. " + SAME_DISTRIBUTION,
            inputs=[
                window_input(31),
                *tree_inputs(),
                initialiser_input("uniform"),
                draw_input("maximal coupling"),
            ],
            outputs=[decoder_output("same distribution")],
        )


class JacobiARDecoderSamePictureTree(DecoderNode):
    NAME = "Decoder: Same-Picture Tree"
    make = staticmethod(decoding.same_picture_tree)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSamePictureTree",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Same-Picture Jacobi with several guesses for each of the next tokens: those that "
            "came closest last time stand by (as SJD-PAC has them, arXiv 2603.18599). Fewer passes on open "
            "prompts; each pass computes more places, in another order, so that ties may fall the other way "
            "more often than with Same-Picture Jacobi. " + SAME_PICTURE,
            inputs=[window_input(31), *tree_inputs(), initialiser_input("uniform")],
            outputs=[decoder_output("same picture")],
        )
