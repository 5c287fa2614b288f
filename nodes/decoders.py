"""The decoder nodes that keep the model's distribution: each puts one decoder, with its settings, on a
wire."""

from __future__ import annotations

from comfy_api.latest import io

from .. import decoding
from ..decoding import Decoder
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


class JacobiARDecoderAutoregressive(DecoderNode):
    NAME = "Decoder: Autoregressive"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderAutoregressive",
            display_name=cls.NAME,
            category=CATEGORY,
            description="One token a pass, the way the model was trained: the slow reference that the "
            "other decoders are measured against. Its picture is what Same-Picture Jacobi gives with the "
            "same seed.",
            inputs=[
                io.Int.Input(
                    "pad_to_window",
                    default=0,
                    min=0,
                    max=255,
                    tooltip="0 (default): one token a pass. A window, for example 31: each pass computes "
                    "as many places as Same-Picture Jacobi with that window and fixed shapes, so that the "
                    "two agree to the last bit; slower on a CPU. Range 0 to 255; change it only to compare.",
                ),
            ],
            outputs=[decoder_output("same picture")],
        )

    @staticmethod
    def make(pad_to_window: int) -> Decoder:
        return decoding.autoregressive(padded_window=pad_to_window)


class JacobiARDecoderGreedy(DecoderNode):
    NAME = "Decoder: Greedy Jacobi"
    CONDITION = "At temperature 0, which it sets. "
    make = staticmethod(decoding.greedy_jacobi)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderGreedy",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Always takes the likeliest token, as temperature 0 does, and so sets temperature, "
            "top_k and top_p aside: no chance, plainer pictures, the same one for every seed. Promise: the "
            "picture of step-by-step decoding at temperature 0 (up to rounding). Santilli et al., arXiv "
            "2305.10427.",
            inputs=[window_input(31)],
            outputs=[decoder_output("same picture at temperature 0")],
        )


class JacobiARDecoderSamePicture(DecoderNode):
    NAME = "Decoder: Same-Picture Jacobi"
    make = staticmethod(decoding.same_picture)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSamePicture",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Several times fewer passes for the very picture that step-by-step decoding gives. "
            "Every place of the picture has its own fixed noise, so a guess is right exactly when it "
            "equals the step-by-step token. " + SAME_PICTURE,
            inputs=[
                window_input(31),
                initialiser_input("uniform"),
                io.Boolean.Input(
                    "fixed_shapes",
                    default=True,
                    tooltip="On (default): every pass computes the same number of places, so a token comes "
                    "out the same to the last bit wherever in the pass it sits. Off: the last passes "
                    "shrink, slightly faster on a CPU; ties may then fall the other way.",
                ),
            ],
            outputs=[decoder_output("same picture")],
        )


class JacobiARDecoderSJD(DecoderNode):
    NAME = "Decoder: SJD"
    make = staticmethod(decoding.sjd)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSJD",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Speculative Jacobi Decoding (arXiv 2410.01699): guesses many tokens, keeps each "
            "with just the probability that leaves the model's distribution unchanged. With maximal "
            "coupling as in arXiv 2510.24211. " + SAME_DISTRIBUTION,
            inputs=[
                window_input(31),
                initialiser_input("uniform"),
                draw_input(),
            ],
            outputs=[decoder_output("same distribution")],
        )


class JacobiARDecoderBlock(DecoderNode):
    NAME = "Decoder: SJD with Block Test"
    make = staticmethod(decoding.block_sjd)

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderBlock",
            display_name=cls.NAME,
            category=CATEGORY,
            description="SJD that tests its guesses all together instead of one by one (block verification, "
            "Sun et al., arXiv 2403.10444): a doubtful guess is made good by sure ones, so more of them "
            "stay on average than in any other exact test. Rejected guesses are always drawn fresh: the "
            "test would be biased otherwise. " + SAME_DISTRIBUTION,
            inputs=[window_input(31), initialiser_input("uniform")],
            outputs=[decoder_output("same distribution")],
        )
