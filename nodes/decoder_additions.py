"""Nodes that take a decoder and give it another part: verification of a kind, a law for its redrafts."""

from __future__ import annotations

from functools import partial

from comfy_api.latest import io

from .. import decoding
from . import sockets
from .decoder_parts import CATEGORY, on_wire
from .errors import explained
from .inputs import check_widgets, check_wires
from .presets import DecoderValue, added


def decoder_input(tooltip: str) -> io.Custom.Input:
    return sockets.Decoder.Input("decoder", tooltip=tooltip)


def added_output() -> io.Custom.Output:
    return sockets.Decoder.Output(
        display_name="decoder",
        tooltip="The decoder with this added, for Generate Image Tokens or another addition. What it now "
        "promises is said on the node.",
    )


class JacobiARAddSemantics(io.ComfyNode):
    NAME = "Add Semantics Verification (SV)"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARAddSemantics",
            display_name=cls.NAME,
            category=CATEGORY,
            description="SJD-SV (arXiv 2609.13245): guesses of rising probability are judged together, as "
            "one piece of the picture, instead of one by one: fewer passes. For SJD, GSD, LANTERN and PJD. "
            "Promise: approximate, whatever the decoder promised before. On models that are sure of their "
            "tokens, such as the built-in one with a prompt, it visibly damages pictures at the paper's "
            "proportion 0.8; proportion 1 hardly does, reject_from_start lies between. SJD with Block Test "
            "is the exact way to judge guesses together.",
            inputs=[
                decoder_input("From Decoder: SJD, GSD, LANTERN or PJD, or such a one with prediction added."),
                io.Float.Input(
                    "proportion",
                    default=0.8,
                    min=0.01,
                    max=1.0,
                    step=0.05,
                    tooltip="How much of a run of guesses is really tested, as a share of its probability "
                    "(0.01 to 1, default 0.8; the paper calls it alpha). 1 tests all of it and is "
                    "the gentlest; lower takes fewer passes and strays further from the model.",
                ),
                io.Boolean.Input(
                    "one_number",
                    default=True,
                    tooltip="On (default, the paper's reading): a run is tested with one random number, "
                    "also when it is shortened. Off: a new number for each shortening, so more guesses "
                    "stay.",
                ),
                io.Boolean.Input(
                    "reject_from_start",
                    default=False,
                    tooltip="When not even the first tested guess of a run stays. Off (default, the paper's "
                    "reading): the untested ones before it stay. On: the whole run goes, so fewer stay: "
                    "gentler, at more passes.",
                ),
            ],
            outputs=[added_output()],
        )

    @classmethod
    def execute(
        cls, decoder: DecoderValue, proportion: float, one_number: bool, reject_from_start: bool
    ) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(decoder=decoder)
            check_widgets(
                cls.define_schema().inputs,
                proportion=proportion,
                one_number=one_number,
                reject_from_start=reject_from_start,
            )
            addition = partial(
                decoding.with_semantics,
                proportion=proportion,
                one_number=one_number,
                reject_from_start=reject_from_start,
            )
            return on_wire(added(decoder, addition))


class JacobiARAddPrediction(io.ComfyNode):
    NAME = "Add Verification Prediction (VP)"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARAddPrediction",
            display_name=cls.NAME,
            category=CATEGORY,
            description="SJD-VP (arXiv 2603.27115): new guesses lean towards tokens whose probability has "
            "been growing from pass to pass, and are tested as what they are. For every decoder that "
            "guesses by chance. Promise: the connected decoder's, unchanged. Whether it saves passes "
            "depends on the model: compare.",
            inputs=[
                decoder_input("Any decoder that guesses: all but Autoregressive, Greedy Jacobi and ZipAR."),
                io.Int.Input(
                    "growth",
                    default=3,
                    min=1,
                    max=8,
                    tooltip="For how many passes in a row a token must have become likelier (1 to 8, "
                    "default 3, as in the paper). Each keeps one more set of probabilities in memory.",
                ),
                io.Float.Input(
                    "decay",
                    default=0.5,
                    min=0.01,
                    max=1.0,
                    step=0.05,
                    tooltip="Weight of an older pass against the next newer one, in the average that a "
                    "token's growth is measured by (0.01 to 1, default 0.5). 1 weighs all alike. No effect "
                    "at growth 1.",
                ),
                io.Float.Input(
                    "cap",
                    default=10.0,
                    min=1.0,
                    max=1000.0,
                    step=1.0,
                    tooltip="The most that a token's probability is multiplied by before all are brought "
                    "back to sum 1 (1 to 1000, default 10). 1 leaves everything as without prediction.",
                ),
            ],
            outputs=[added_output()],
        )

    @classmethod
    def execute(cls, decoder: DecoderValue, growth: int, decay: float, cap: float) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(decoder=decoder)
            check_widgets(cls.define_schema().inputs, growth=growth, decay=decay, cap=cap)
            return on_wire(
                added(decoder, partial(decoding.with_prediction, growth=growth, decay=decay, cap=cap))
            )
