"""Save Picture with Facts: PNG files that tell how each picture was made.

ComfyUI's Save Image writes one set of texts into all pictures of a batch, and what a node adds to it
(extra_pnginfo) is there only if that node ran for this very prompt: not when its result came from the cache.
Here the facts come with the tokens, so that they are there either way, and each picture has its own.
"""

from __future__ import annotations

import io as bytes_io
import json
from typing import Any

import numpy as np
from comfy_api.latest import io
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from . import host, sockets
from .errors import explained
from .file_names import check_prefix, write_new
from .inputs import check_wires
from .picture_facts import PNG_KEY
from .pictures import check_pictures
from .values import TokenGridValue


class JacobiARSavePicture(io.ComfyNode):
    NAME = "Save Picture with Facts"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARSavePicture",
            display_name=cls.NAME,
            category="Jacobi AR/tokens",
            description="Saves pictures as Save Image does, with the workflow in them, and writes into "
            f'each PNG how it was made (text "{PNG_KEY}", JSON): its own seed in a batch, its prompt in a '
            "list, the decoder and its promise, and what the automatic settings were.",
            inputs=[
                io.Image.Input(
                    "image",
                    tooltip="The pictures of these tokens, one each, from Decode Image Tokens; upscaled if "
                    "you like.",
                ),
                sockets.Tokens.Input(
                    "tokens",
                    tooltip="The tokens of the same pictures, in the same order: they know the facts.",
                ),
                io.String.Input(
                    "filename_prefix",
                    default="JacobiAR",
                    tooltip="Start of the file name, with a folder if you like (default JacobiAR). A "
                    "number is added; no file is ever overwritten. %year%, %month%, %day%, %width%, "
                    "%height% are filled in.",
                ),
            ],
            outputs=[],
            hidden=[io.Hidden.prompt, io.Hidden.extra_pnginfo],
            is_output_node=True,
        )

    @classmethod
    def execute(cls, image: Tensor, tokens: TokenGridValue, filename_prefix: str) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(image=image, tokens=tokens)
            check_pictures(image, tokens.pictures)
            height, width = image.shape[1:3]
            folder, name, number, subfolder = host.saving_place(check_prefix(filename_prefix), height, width)
            shared = host_texts(cls.hidden.prompt, cls.hidden.extra_pnginfo)
            saved = []
            for picture, facts in zip(image, tokens.facts, strict=True):
                texts = {**shared, PNG_KEY: facts.text()} if host.saves_metadata() else {}
                path = write_new(folder, lambda tried: f"{name}_{tried:05}_.png", number, png(picture, texts))
                saved.append({"filename": path.name, "subfolder": subfolder, "type": "output"})
        return io.NodeOutput(ui={"images": saved})


def host_texts(prompt: Any, extra: Any) -> dict[str, str]:
    """What Save Image writes: the prompt, and what the page sends along, such as the workflow."""
    texts = {} if prompt is None else {"prompt": json.dumps(prompt)}
    return texts | {name: json.dumps(value) for name, value in (extra or {}).items()}


def png(
    picture: Tensor,  # [height, width, 3 or 4] float 0..1
    texts: dict[str, str],
) -> bytes:
    """A PNG file with these texts."""
    pixels = (
        (picture.detach().float().cpu() * 255).clamp(0, 255).numpy().astype(np.uint8)
    )  # as Save Image rounds
    info = PngInfo()
    for name, text in texts.items():
        info.add_text(name, text)
    content = bytes_io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG", pnginfo=info, compress_level=4)
    return content.getvalue()
