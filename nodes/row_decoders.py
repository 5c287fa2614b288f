"""The decoder nodes that work on several rows of the picture at once."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from .. import decoding
from ..decoding import Decoder
from .decoder_parts import (
    APPROXIMATE,
    CATEGORY,
    DecoderNode,
    decoder_output,
    draw_input,
    initialiser_input,
)


def threshold_input(advice: str) -> io.Int.Input:
    return io.Int.Input(
        "context_threshold",
        default=8,
        min=1,
        max=1024,
        tooltip="A row starts when the row above it has so many tokens (1 to 1024, default 8). Fewer takes "
        f"fewer passes and sees less of the picture; a whole row or more is {advice}",
    )


class JacobiARDecoderPJD(DecoderNode):
    NAME = "Decoder: PJD"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderPJD",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Parallel Jacobi Decoding (arXiv 2606.05703): SJD on several rows at once; a row "
            "starts before the row above it is finished. Pays where rows are long, 24 tokens or more. "
            + APPROXIMATE,
            inputs=[
                io.Int.Input(
                    "window",
                    default=7,
                    min=1,
                    max=255,
                    tooltip="Tokens guessed ahead in each open row and checked in one pass (1 to 255, "
                    "default 7). Papers count the last known token too: their 8 is 7 here.",
                ),
                threshold_input(
                    "SJD, a row at a time. A quarter of a row is usual. The paper counts the token that "
                    "starts a row too: its c = 9 is 8 here."
                ),
                initialiser_input("uniform"),
                draw_input(),
                io.Boolean.Input(
                    "only_draft",
                    default=False,
                    tooltip="Off (default, the paper's way): every open row keeps what passes its test. On: "
                    "rows below the first unfinished one only prepare guesses, which are tested again in "
                    "order. The promise is then SJD's, same distribution, at more passes.",
                ),
            ],
            outputs=[decoder_output("approximate unless only_draft")],
        )

    @staticmethod
    def make(context_threshold: int, **settings: Any) -> Decoder:
        return decoding.pjd(threshold=context_threshold, **settings)


class JacobiARDecoderZipAR(DecoderNode):
    NAME = "Decoder: ZipAR"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderZipAR",
            display_name=cls.NAME,
            category=CATEGORY,
            description="ZipAR (ICML 2025, arXiv 2412.04062): one token a pass in every open row, nothing "
            "is tested; a row starts before the row above it is finished. The number of passes is known "
            "beforehand. With a whole row as threshold it draws step by step. " + APPROXIMATE,
            inputs=[
                threshold_input(
                    "step-by-step decoding. The published code has 16 for rows of 48 tokens, 8 for LlamaGen."
                )
            ],
            outputs=[decoder_output("approximate")],
        )

    @staticmethod
    def make(context_threshold: int) -> Decoder:
        return decoding.zipar(threshold=context_threshold)
