"""The decoder nodes: each puts one decoder, with its settings, on a wire."""

from __future__ import annotations

from comfy_api.latest import io

from .. import decoding
from . import host, sockets
from .errors import explained
from .model_files import one_of

CATEGORY = "Jacobi AR/decoders"
INITIALISERS = list(decoding.INITIALISERS)
DRAWS = list(decoding.DRAWS)

SAME_PICTURE = (
    "Promise: same picture. The tokens are those of step-by-step decoding with the same seed (up to "
    "rounding where two tokens tie)."
)
SAME_DISTRIBUTION = (
    "Promise: same distribution. Each picture is as likely as with step-by-step decoding; a seed gives "
    "another picture than it gives there."
)


def window_input(default: int) -> io.Int.Input:
    return io.Int.Input(
        "window",
        default=default,
        min=1,
        max=255,
        tooltip=f"Tokens guessed ahead and checked in one pass (1 to 255, default {default}). Larger takes "
        "fewer passes, each a little dearer: try 15 to 63. One less than a multiple of 32 suits the "
        "hardware. Papers count the last known token too: their 16 is 15 here.",
    )


def initialiser_input(default: str) -> io.Combo.Input:
    return io.Combo.Input(
        "initialiser",
        options=INITIALISERS,
        default=default,
        tooltip=f'The first guess for a token that was never tried (default "{default}"). "copy left" and '
        "\"copy above\" repeat a neighbour and suit flat pictures; \"uniform\" is any token; \"neighbour's "
        'law" draws from the probabilities of the token to the left. Changes the number of passes, never '
        "the promise.",
    )


def decoder_output(promise: str) -> io.Custom.Output:
    return sockets.Decoder.Output(
        display_name=f"decoder ({promise})",
        tooltip=f"The decoder and its settings, for Generate Image Tokens. It keeps this promise: {promise}.",
    )


def on_wire(decoder: decoding.Decoder, condition: str = "") -> io.NodeOutput:
    """The decoder, with what it promises in words on the node."""
    text = condition + decoder.promise.sentence
    host.show_text(text)
    return io.NodeOutput(decoder, ui={"text": (text,)})


class JacobiARDecoderAutoregressive(io.ComfyNode):
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

    @classmethod
    def execute(cls, pad_to_window: int) -> io.NodeOutput:
        with explained(cls.NAME):
            return on_wire(decoding.autoregressive(padded_window=pad_to_window))


class JacobiARDecoderGreedy(io.ComfyNode):
    NAME = "Decoder: Greedy Jacobi"

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

    @classmethod
    def execute(cls, window: int) -> io.NodeOutput:
        with explained(cls.NAME):
            return on_wire(decoding.greedy_jacobi(window=window), "At temperature 0, which it sets. ")


class JacobiARDecoderSamePicture(io.ComfyNode):
    NAME = "Decoder: Same-Picture Jacobi"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSamePicture",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Several times fewer passes for the very picture that step-by-step decoding gives. "
            "Every place of the picture has its own fixed noise, so a guess is right exactly when it "
            "equals the step-by-step token. "
            + SAME_PICTURE,
            inputs=[
                window_input(31),
                initialiser_input("copy left"),
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

    @classmethod
    def execute(cls, window: int, initialiser: str, fixed_shapes: bool) -> io.NodeOutput:
        with explained(cls.NAME):
            one_of("initialiser", initialiser, INITIALISERS)
            return on_wire(
                decoding.same_picture(window=window, fixed_shapes=fixed_shapes, initialiser=initialiser)
            )


class JacobiARDecoderSJD(io.ComfyNode):
    NAME = "Decoder: SJD"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecoderSJD",
            display_name=cls.NAME,
            category=CATEGORY,
            description="Speculative Jacobi Decoding (arXiv 2410.01699): guesses many tokens, keeps each "
            "with just the probability that leaves the model's distribution unchanged. With maximal "
            "coupling as in arXiv 2510.24211. "
            + SAME_DISTRIBUTION,
            inputs=[
                window_input(31),
                initialiser_input("uniform"),
                io.Combo.Input(
                    "draw",
                    options=DRAWS,
                    default="fresh",
                    tooltip='How rejected guesses are drawn again: "fresh" (default) as in the paper; '
                    '"maximal coupling" keeps the old guess as often as the new probabilities allow; '
                    '"shared noise" draws with the noise of the place. The latter two often need fewer '
                    "passes on open prompts. The promise stays the same.",
                ),
            ],
            outputs=[decoder_output("same distribution")],
        )

    @classmethod
    def execute(cls, window: int, initialiser: str, draw: str) -> io.NodeOutput:
        with explained(cls.NAME):
            one_of("initialiser", initialiser, INITIALISERS)
            one_of("draw", draw, DRAWS)
            return on_wire(decoding.sjd(window=window, initialiser=initialiser, draw=draw))
