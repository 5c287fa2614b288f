"""Jacobi Decoder: for people who would rather not choose parts."""

from __future__ import annotations

from comfy_api.latest import io

from . import sockets
from .decoder_parts import CATEGORY, on_wire
from .errors import explained
from .inputs import one_of
from .presets import PRESETS, Preset


class JacobiARDecoderPreset(io.ComfyNode):
    NAME = "Jacobi Decoder"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderPreset",
            display_name=cls.NAME,
            category=CATEGORY,
            description="A decoder by what you want from it; its settings suit the model that it runs with "
            "and are shown on Generate Image Tokens after the run. Promise: as chosen. The single decoders, "
            "with all their settings and papers, are the other nodes here.",
            inputs=[
                io.Combo.Input(
                    "preset",
                    options=list(PRESETS),
                    default=next(iter(PRESETS)),
                    tooltip='"same picture (safe)" (default): step-by-step decoding\'s picture for the '
                    'seed, several times faster. "same distribution, fast": pictures just as likely, other '
                    'ones for a seed, often faster. "approximate, fastest": pictures close to what the '
                    'model would draw. "step by step": one token a pass, the slow reference.',
                ),
            ],
            outputs=[
                sockets.Decoder.Output(
                    display_name="decoder (by preset)",
                    tooltip="The decoder, for Generate Image Tokens. What it promises is said on the node.",
                ),
            ],
        )

    @classmethod
    def execute(cls, preset: str) -> io.NodeOutput:
        with explained(cls.NAME):
            one_of("preset", preset, PRESETS)
            return on_wire(Preset(preset))
