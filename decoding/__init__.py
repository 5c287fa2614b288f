"""Jacobi-style decoders for autoregressive image models. Knows tokens and laws; no host, no files, no model.

Words of the field, each with one meaning here:
    target model    the autoregressive image model, the only network (nothing is trained)
    grid            rows x cols image tokens in raster order (`TokenGrid`)
    lane            a run of stream positions decoded left to right; one an image, or one an open row
    fixed           a token that will not change again; `length` is a lane's first position that is not
    window (W)      drafts a step
    draft           a proposed token together with the law p that it was drawn from
    column          a place in the window
    candidates      what a tree of drafts tries in each of its first columns: the draft and its siblings
    target law (q)  probabilities at a position, given the tokens fed before it
    accept, reject  what a verifier does with a draft
    residual        max(q - p, 0): the law of the token committed at the first rejection
    bonus           the token committed when every draft was accepted
    redraft         new drafts behind the committed token; the next step tests them
    pass            one forward of the target model, the prefill included (papers: NFE)
    step compression  passes of step-by-step decoding over passes used
Shape letters: B images, L lanes, W window, D drafts of a step, V codebook size, S stream positions, K visible
slots; of a tree d columns, K candidates, E inputs off the chain. Tokens are int64; laws float32 (float64 for
a float64 model) whatever the weights are.
"""

from .codebook import Codebook
from .decoders import (
    DRAWS,
    Decoder,
    autoregressive,
    block_sjd,
    greedy_jacobi,
    gsd,
    lantern,
    pjd,
    same_picture,
    same_picture_denoising,
    same_picture_rows,
    same_picture_tree,
    sjd,
    sjd2,
    sjd_tree,
    with_prediction,
    with_semantics,
    zipar,
)
from .errors import DecodingError, NonFiniteLogits
from .grid import TokenGrid
from .initialisers import INITIALISERS
from .loop import StepReport, decode, run_to_end
from .promises import Promise
from .randomness import image_seeds
from .sampling import SamplingSettings
from .target import TargetModel
from .trace import DecodeResult, Trace

__all__ = [
    "DRAWS",
    "Codebook",
    "INITIALISERS",
    "DecodeResult",
    "Decoder",
    "DecodingError",
    "NonFiniteLogits",
    "Promise",
    "SamplingSettings",
    "StepReport",
    "TargetModel",
    "TokenGrid",
    "Trace",
    "autoregressive",
    "block_sjd",
    "decode",
    "greedy_jacobi",
    "gsd",
    "image_seeds",
    "lantern",
    "pjd",
    "run_to_end",
    "same_picture",
    "same_picture_denoising",
    "same_picture_rows",
    "same_picture_tree",
    "sjd",
    "sjd2",
    "sjd_tree",
    "with_prediction",
    "with_semantics",
    "zipar",
]
