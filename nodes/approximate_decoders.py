"""The decoder nodes that relax the test: fewer passes, pictures from a law close to the model's."""

from __future__ import annotations

from comfy_api.latest import io

from .. import decoding
from .decoder_parts import (
    APPROXIMATE,
    CATEGORY,
    DecoderNode,
    decoder_output,
    draw_input,
    initialiser_input,
    window_input,
)


class JacobiARDecoderGSD(DecoderNode):
    NAME = "Decoder: GSD"
    make = staticmethod(decoding.gsd)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderGSD",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Grouped Speculative Decoding (ICCV 2025, arXiv 2508.07747): as SJD, but a guess is "
            "judged together with the tokens that are about as likely and look like it. One of several "
            "equally good tokens is then rarely refused. " + APPROXIMATE,
            inputs=[
                window_input(31),
                initialiser_input("uniform"),
                draw_input(),
                io.Int.Input(
                    "group",
                    default=14,
                    min=2,
                    max=200,
                    step=2,
                    tooltip="Tokens in a group: half of them more likely than the guess, half as likely or "
                    "less, the guess included (2 to 200, default 14). The paper tries 3 to 50. Larger "
                    "takes fewer passes and strays further from the model.",
                ),
                io.Float.Input(
                    "probability_gap",
                    default=0.15,
                    min=0.01,
                    max=1.0,
                    step=0.01,
                    tooltip="Only tokens whose probability differs by less than this from the guess's "
                    "belong to its group (0.01 to 1, default 0.15). Larger strays further.",
                ),
                io.Float.Input(
                    "embedding_gap",
                    default=0.5,
                    min=0.01,
                    max=1000.0,
                    step=0.05,
                    tooltip="Only tokens that look like the guess belong to its group: squared distance of "
                    "the two codebook rows below this (0.01 to 1000, default 0.5). Where the tokenizer "
                    "normalises its rows, as LlamaGen and the built-in one do, 4 is the largest there is. "
                    "Larger strays further.",
                ),
            ],
            outputs=[decoder_output("approximate")],
        )


# What LANTERN lends exceeds the probability of a drawn start, so that nearly any would pass: copies only.
LANTERN_STARTS = [name for name, part in decoding.INITIALISERS.items() if not part.draws]


class JacobiARDecoderLANTERN(DecoderNode):
    NAME = "Decoder: LANTERN"
    make = staticmethod(decoding.lantern)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderLANTERN",
            display_name=cls.NAME,
            category=CATEGORY,
            description="LANTERN's relaxed test (ICLR 2025, arXiv 2410.03355) inside SJD: a guess may "
            "borrow the probability of the tokens that look most like it, up to a bound. " + APPROXIMATE,
            inputs=[
                window_input(31),
                initialiser_input("copy left", LANTERN_STARTS),
                draw_input(),
                io.Int.Input(
                    "neighbours",
                    default=1000,
                    min=1,
                    max=100_000,
                    tooltip="How many look-alikes of a guess may lend to it, nearest codebook rows first (1 "
                    "to 100000, default 1000, as in the paper with 16384 codes; at most all others of the "
                    "codebook). Fewer stays closer to the model.",
                ),
                io.Float.Input(
                    "bound",
                    default=0.1,
                    min=0.01,
                    max=100.0,
                    step=0.05,
                    tooltip="How much probability they may lend together (0.01 to 100, default 0.1). Up to "
                    "1: an amount; close to 1 with many neighbours nearly every guess passes, which gives "
                    "noise. Above 1, as in LANTERN++: up to (bound - 1) times the guess's own. "
                    "Larger takes fewer passes and strays further from the model.",
                ),
            ],
            outputs=[decoder_output("approximate")],
        )
