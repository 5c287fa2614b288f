"""Convert AR Image Model: any model that loads, as one file that loads alone."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import torch
from comfy_api.latest import io

from ..model_loaders.companions import PICTURES, where_from
from ..model_loaders.convert import Conversion, plan_conversion, write
from ..model_loaders.load import load_image_model
from ..model_loaders.load_tokenizer import BUILTIN_TOKENIZER
from . import host, model_choices
from .errors import explained
from .file_names import is_device
from .inputs import check_text, check_widgets, one_of
from .load_model import AUTO, BUILTIN, NONE, model_path
from .sizes import shown_bytes
from .tokenizer_search import find_tokenizer

BFLOAT16, FLOAT8 = "bfloat16", "float8 weights"
SUFFIX = ".safetensors"
FILE_NAME = re.compile(r"[^\x00-\x1f<>:\"/\\|?*.][^\x00-\x1f<>:\"/\\|?*]*")


class JacobiARConvertModel(io.ComfyNode):
    NAME = "Convert AR Image Model"

    @classmethod
    def define_schema(cls) -> io.Schema:
        files = list(model_choices.models().files)
        tokenizers = list(model_choices.tokenizers().files)
        return io.Schema(
            node_id="JacobiARConvertModel",
            display_name=cls.NAME,
            category="Jacobi AR/loaders",
            description="Writes a model, its text tokenizer and its image tokenizer into one .safetensors "
            "file in models/ar_image, which loads alone. The new file gives exactly the pictures that the "
            "old one gives at the same precision. A separate text encoder (flan-t5-xl) is not included.",
            inputs=[
                io.Combo.Input(
                    "model",
                    options=[BUILTIN, *files],
                    default=BUILTIN,
                    tooltip="The model to convert: whatever Load AR Image Model loads (default: the built-in "
                    "one).",
                ),
                io.Combo.Input(
                    "tokenizer",
                    options=[AUTO, NONE, BUILTIN, *tokenizers],
                    default=AUTO,
                    tooltip="The image tokenizer (VQ) to put into the file. auto (default): the one that "
                    "belongs to the model. none: leave it out; the new file then needs it beside it.",
                ),
                io.Combo.Input(
                    "dtype",
                    options=[BFLOAT16, FLOAT8],
                    default=BFLOAT16,
                    tooltip="bfloat16 (default): exact for models published so, half the size of float32. "
                    "float8 weights: about half of that again; close to the model, not the same pictures.",
                ),
                io.String.Input(
                    "name",
                    default="",
                    tooltip="Name of the new file in models/ar_image. Empty (default): the model's name and "
                    "the precision.",
                ),
                io.Boolean.Input(
                    "overwrite",
                    default=False,
                    tooltip="Whether a file of that name is replaced. Off (default): it is an error.",
                ),
            ],
            outputs=[io.String.Output(display_name="file", tooltip="The path of the new file.")],
            is_output_node=True,
        )

    @classmethod
    def execute(cls, model: str, tokenizer: str, dtype: str, name: str, overwrite: bool) -> io.NodeOutput:
        with explained(cls.NAME, "Close other programs, or unload other models."):
            one_of("dtype", dtype, [BFLOAT16, FLOAT8])
            check_text("name", name)
            check_widgets(cls.define_schema().inputs, overwrite=overwrite)
            source = model_path(model)
            target = host.model_roots()[0] / file_name(name, source, dtype)
            vq = tokenizer_path(source, tokenizer)
            conversion = plan_conversion(source, vq, float8=dtype == FLOAT8)
            text = convert(conversion, target, overwrite, vq)
            if vq is None and tokenizer == AUTO:
                source = where_from(conversion.model.family, PICTURES) or "Put the VQ file beside the model"
                text += f". Warning: none that fits was found, and no picture is made without. {source}."
        host.show_text(text)
        return io.NodeOutput(str(target), ui={"text": (text,)})


def file_name(name: str, source: Path, dtype: str) -> str:
    """The name of the new file, in the model folder and nowhere else."""
    usual = source.name if source.is_dir() else source.stem  # a folder's 2.0 is no suffix
    chosen = name.strip().removesuffix(SUFFIX) or f"{usual}_{'bf16' if dtype == BFLOAT16 else 'fp8'}"
    if not FILE_NAME.fullmatch(chosen) or is_device(chosen):
        raise ValueError(
            f'name "{name}" is no plain file name: leave out folders, a dot at the beginning, names of '
            'devices (con, nul, …) and the signs < > : " / \\ | ? *'
        )
    return chosen + SUFFIX


def tokenizer_path(source: Path, choice: str) -> Path | None:
    if choice == NONE:
        return None
    if choice == BUILTIN:
        return BUILTIN_TOKENIZER
    choices = model_choices.tokenizers()
    if choice != AUTO:
        return choices.pick("tokenizer", choice)
    model = load_image_model(source, device="meta", dtype=torch.bfloat16)
    return find_tokenizer(model, source, choices.files, {BUILTIN: BUILTIN_TOKENIZER}, model_choices.peek)


def convert(conversion: Conversion, target: Path, overwrite: bool, vq: Path | None) -> str:
    """Writes the file and says what is in it."""
    progress = host.Progress(100)
    with closing(write(conversion, target, overwrite=overwrite)) as running:
        for done in running:
            host.stop_if_interrupted()
            progress.update(int(100 * done / conversion.bytes), shown_bytes(done))
    inside = f"with the image tokenizer of {vq.name}" if vq else "without an image tokenizer"
    return f"{target.name}: {conversion.model.name}, {shown_bytes(target.stat().st_size)}, {inside}"
