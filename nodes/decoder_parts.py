"""What the decoder nodes share: widgets, promises in words, and how a decoder goes on a wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from comfy_api.latest import io

from .. import decoding
from ..decoding import Decoder
from . import host, sockets
from .errors import explained
from .inputs import check_widgets
from .presets import DecoderValue

CATEGORY = "Jacobi AR/decoders"
INITIALISERS = list(decoding.INITIALISERS)

SAME_PICTURE = (
    "Promise: same picture. The tokens are those of step-by-step decoding with the same seed (up to "
    "rounding where two tokens tie)."
)
SAME_DISTRIBUTION = (
    "Promise: same distribution. Each picture is as likely as with step-by-step decoding; a seed gives "
    "another picture than it gives there."
)
APPROXIMATE = (
    "Promise: approximate. Pictures come from a distribution close to the model's, not the same; look at "
    "them."
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


INITIALISER_WORDS = {
    "uniform": '"uniform" is any token',
    "copy left": '"copy left" repeats the token to the left',
    "copy above": '"copy above" repeats the one above, good for flat pictures',
    "neighbour's law": '"neighbour\'s law" draws from the probabilities of the token to the left',
}


def initialiser_input(default: str, options: Sequence[str] = INITIALISERS) -> io.Combo.Input:
    words = "; ".join(INITIALISER_WORDS[option] for option in options)
    return io.Combo.Input(
        "initialiser",
        options=list(options),
        default=default,
        tooltip=f'The first guess for a token that was never tried (default "{default}"): {words}. Changes '
        "the number of passes, never the promise.",
    )


def draw_input(default: str = "fresh") -> io.Combo.Input:
    return io.Combo.Input(
        "draw",
        options=list(decoding.DRAWS),
        default=default,
        tooltip=f'How rejected guesses are drawn again (default "{default}"): "fresh" owes nothing to the '
        'old guess, as in SJD\'s paper; "maximal coupling" keeps it as often as the new probabilities '
        'allow; "shared noise" draws with the noise of the place. The latter two often need fewer passes on '
        "open prompts. The promise stays the same.",
    )


def decoder_output(promise: str) -> io.Custom.Output:
    return sockets.Decoder.Output(
        display_name=f"decoder ({promise})",
        tooltip=f"The decoder and its settings, for Generate Image Tokens. It keeps this promise: {promise}.",
    )


def on_wire(decoder: DecoderValue, condition: str = "") -> io.NodeOutput:
    """The decoder, with what it promises in words on the node."""
    text = condition + decoder.promise.sentence
    host.show_text(text)
    return io.NodeOutput(decoder, ui={"text": (text,)})


class DecoderNode(io.ComfyNode):
    """A node whose widgets are the settings of one decoder: `make` takes them by the widgets' ids."""

    NAME: ClassVar[str]
    CONDITION: ClassVar[str] = ""  # under which the promise holds, in words
    make: ClassVar[Callable[..., Decoder]]

    @classmethod
    def execute(cls, **settings: Any) -> io.NodeOutput:
        with explained(cls.NAME):
            check_widgets(cls.define_schema().inputs, **settings)
            return on_wire(cls.make(**settings), cls.CONDITION)
