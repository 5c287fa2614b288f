"""The ComfyUI nodes: widgets in, one call, outputs.

What decodes lives in `decoding`, what loads in `model_loaders`; `host` is the one file that talks to ComfyUI.
"""

from __future__ import annotations

from comfy_api.latest import ComfyExtension, io

from . import host
from .decode_tokens import JacobiARDecodeTokens
from .decoders import (
    JacobiARDecoderAutoregressive,
    JacobiARDecoderGreedy,
    JacobiARDecoderSamePicture,
    JacobiARDecoderSJD,
)
from .encode_prompt import JacobiAREncodePrompt
from .generate import JacobiARGenerate
from .load_model import JacobiARLoadModel

NODES: list[type[io.ComfyNode]] = [
    JacobiARLoadModel,
    JacobiAREncodePrompt,
    JacobiARDecoderAutoregressive,
    JacobiARDecoderGreedy,
    JacobiARDecoderSamePicture,
    JacobiARDecoderSJD,
    JacobiARGenerate,
    JacobiARDecodeTokens,
]


class JacobiARExtension(ComfyExtension):
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return NODES


async def comfy_entrypoint() -> JacobiARExtension:
    host.register_model_folder()
    return JacobiARExtension()
