"""Save Token Grid: tokens to a small file."""

from __future__ import annotations

from comfy_api.latest import io

from . import host, sockets
from .errors import explained
from .file_names import check_prefix, write_new
from .inputs import check_wires
from .token_files import SUFFIX, to_bytes
from .values import TokenGridValue


class JacobiARSaveTokens(io.ComfyNode):
    NAME = "Save Token Grid"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARSaveTokens",
            display_name=cls.NAME,
            category="Jacobi AR/tokens",
            description="Saves tokens to a .safetensors file in ComfyUI's output folder: a few kilobytes "
            "that decode to the picture again, without loss. Its header says which image tokenizer they "
            "need and how each picture was made: model, prompt, seed, decoder, settings. Load Token Grid "
            "reads it.",
            inputs=[
                sockets.Tokens.Input(
                    "tokens", tooltip="The tokens to save, all pictures of the batch in one file."
                ),
                io.String.Input(
                    "filename_prefix",
                    default="tokens/JacobiAR",
                    tooltip="Start of the file name, with a folder if you like (default tokens/JacobiAR). "
                    "A number is added; no file is ever overwritten. %year%, %month%, %day% and the like "
                    "are filled in.",
                ),
            ],
            outputs=[],
            is_output_node=True,
        )

    @classmethod
    def execute(cls, tokens: TokenGridValue, filename_prefix: str) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires(tokens=tokens)
            folder, name, number, subfolder = host.saving_place(check_prefix(filename_prefix))
            content = to_bytes(tokens)
            path = write_new(folder, lambda tried: f"{name}_{tried:05}_{SUFFIX}", number, content)
            text = f"saved {len(content)} bytes: output/{(subfolder + '/') if subfolder else ''}{path.name}"
            host.show_text(text)
            return io.NodeOutput(ui={"text": (text,)})
