"""The ComfyUI nodes: widgets in, one call, outputs.

What decodes lives in `decoding`, what loads in `model_loaders`; `host` is the one file that talks to ComfyUI.
"""

from __future__ import annotations

from comfy_api.latest import ComfyExtension, io

from . import host
from .approximate_decoders import JacobiARDecoderGSD, JacobiARDecoderLANTERN
from .compare_decoders import JacobiARCompareDecoders
from .compare_tokens import JacobiARCompareTokens
from .convert_model import JacobiARConvertModel
from .decode_tokens import JacobiARDecodeTokens
from .decoder_additions import JacobiARAddPrediction, JacobiARAddSemantics
from .decoders import (
    JacobiARDecoderAutoregressive,
    JacobiARDecoderBlock,
    JacobiARDecoderGreedy,
    JacobiARDecoderSamePicture,
    JacobiARDecoderSJD,
)
from .decoding_report import JacobiARDecodingReport
from .denoising_decoder import JacobiARDecoderSJD2
from .encode_image import JacobiAREncodeImage
from .encode_prompt import JacobiAREncodePrompt
from .generate import JacobiARGenerate
from .keep_tokens import JacobiARKeepRows, JacobiARTokenMask
from .list_models import JacobiARListModels
from .load_model import JacobiARLoadModel
from .load_tokens import JacobiARLoadTokens
from .preset_decoder import JacobiARDecoderPreset
from .prompt_list import JacobiARPromptList
from .row_decoders import JacobiARDecoderPJD, JacobiARDecoderZipAR
from .save_picture import JacobiARSavePicture
from .save_tokens import JacobiARSaveTokens
from .tree_decoder import JacobiARDecoderSamePictureTree, JacobiARDecoderTree

NODES: list[type[io.ComfyNode]] = [
    JacobiARLoadModel,
    JacobiARListModels,
    JacobiARConvertModel,
    JacobiAREncodePrompt,
    JacobiARDecoderPreset,
    JacobiARDecoderAutoregressive,
    JacobiARDecoderGreedy,
    JacobiARDecoderSamePicture,
    JacobiARDecoderSJD,
    JacobiARDecoderBlock,
    JacobiARDecoderGSD,
    JacobiARDecoderLANTERN,
    JacobiARDecoderPJD,
    JacobiARDecoderZipAR,
    JacobiARAddSemantics,
    JacobiARAddPrediction,
    JacobiARGenerate,
    JacobiARDecodeTokens,
    JacobiARCompareDecoders,
    JacobiARDecodingReport,
    JacobiARKeepRows,
    JacobiARTokenMask,
    JacobiARSaveTokens,
    JacobiARLoadTokens,
    JacobiAREncodeImage,
    JacobiARPromptList,
    JacobiARSavePicture,
    JacobiARCompareTokens,
    JacobiARDecoderTree,
    JacobiARDecoderSamePictureTree,
    JacobiARDecoderSJD2,
]


class JacobiARExtension(ComfyExtension):
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return NODES


async def comfy_entrypoint() -> JacobiARExtension:
    host.register_model_folder()
    return JacobiARExtension()
