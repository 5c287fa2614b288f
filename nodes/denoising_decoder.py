"""The decoder node whose guesses begin as noise."""

from __future__ import annotations

from comfy_api.latest import io

from .. import decoding
from ..decoding.denoising import MOST_STEPS
from .decoder_parts import CATEGORY, SAME_DISTRIBUTION, DecoderNode, decoder_output, draw_input, window_input


class JacobiARDecoderSJD2(DecoderNode):
    NAME = "Decoder: SJD2 (Denoising)"
    make = staticmethod(decoding.sjd2)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSJD2",
            display_name=cls.NAME,
            category=CATEGORY,
            description="SJD whose guesses begin as noise: a place that was never tried is shown to the "
            "model under noise, which clears up over some passes, before it is shown and tested as a token "
            "(SJD2, arXiv 2510.08994). Needs weights that were trained to read noise: the built-in model has "
            "them, others are refused. Here only the guesses rest on that training, not what tests them. "
            + SAME_DISTRIBUTION,
            inputs=[
                window_input(31),
                io.Int.Input(
                    "steps",
                    default=1,
                    min=1,
                    max=MOST_STEPS,
                    tooltip="Passes that a guess spends under noise before it is shown and tested as a token "
                    "(1 to 64, default 1, which takes fewest on the built-in model): a guess under noise "
                    "cannot be kept, so more than the window divided by the tokens of a pass only costs "
                    "passes.",
                ),
                draw_input("maximal coupling"),
            ],
            outputs=[decoder_output("same distribution")],
        )
