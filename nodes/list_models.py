"""Find AR Image Models: what there is in the model folders, and what is missing."""

from __future__ import annotations

from comfy_api.latest import io

from ..model_loaders.load_tokenizer import BUILTIN_TOKENIZER
from . import model_choices
from .errors import explained
from .load_model import BUILTIN
from .model_files import signature
from .model_listing import listing


class JacobiARListModels(io.ComfyNode):
    NAME = "Find AR Image Models"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARListModels",
            display_name=cls.NAME,
            category="Jacobi AR/loaders",
            description="Lists AR image models and image tokenizers in models/ar_image and in the folders "
            "of other packages for such models: family, size, what belongs to it, what is missing and where "
            "to get it, and why a file does not load. Reads only the beginnings of the files.",
            inputs=[],
            outputs=[io.String.Output(display_name="list", tooltip="The list as text.")],
            is_output_node=True,
        )

    @classmethod
    def fingerprint_inputs(cls) -> str:
        """Changes with the files, so that the list is never an old one."""
        choices = [*model_choices.tokenizers().files.values(), *model_choices.text_encoders().files.values()]
        choices += model_choices.unfinished().values()
        return repr([signature(path) for path in choices])

    @classmethod
    def execute(cls) -> io.NodeOutput:
        with explained(cls.NAME):
            choices = model_choices.tokenizers()
            packaged = {BUILTIN: BUILTIN_TOKENIZER}
            files, folders = choices.files, choices.folders
            text = listing(
                files,
                folders,
                packaged,
                model_choices.text_encoder_for,
                model_choices.seen,
                model_choices.peek,
                model_choices.unfinished(),
            )
        return io.NodeOutput(text, ui={"text": (text,)})
