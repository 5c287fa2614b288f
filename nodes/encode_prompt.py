"""Encode AR Prompt: text to what the model is conditioned on."""

from __future__ import annotations

from comfy_api.latest import io

from . import host, sockets
from .errors import explained
from .inputs import check_text, check_wires
from .values import ModelValue


class JacobiAREncodePrompt(io.ComfyNode):
    NAME = "Encode AR Prompt"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiAREncodePrompt",
            display_name=cls.NAME,
            category="Jacobi AR/sampling",
            description="Turns text into the prompt of this model. What the model could not use is said on "
            "the node.",
            inputs=[
                sockets.Model.Input(
                    "model",
                    tooltip="From Load AR Image Model. A prompt fits only the kind of model that it was "
                    "encoded for.",
                ),
                io.String.Input(
                    "text",
                    multiline=True,
                    dynamic_prompts=True,
                    default="red heart",
                    tooltip="What to draw (default: red heart). Built-in model: the English name of an "
                    "emoji or a country, such as: octopus, flag japan; noto, twemoji or flat in front asks "
                    "for a style of drawing. LlamaGen c2i: a class number, 0 to 999. All others: any "
                    "sentence; LlamaGen t2i reads English only. Empty: no prompt, the model draws what it "
                    "likes (not LlamaGen c2i).",
                ),
            ],
            outputs=[
                sockets.Prompt.Output(
                    display_name="prompt", tooltip="The encoded prompt, for Generate Image Tokens."
                ),
            ],
        )

    @classmethod
    def execute(cls, model: ModelValue, text: str) -> io.NodeOutput:
        with explained(
            cls.NAME, "Unload other models, use a smaller text encoder, or start ComfyUI with --lowvram."
        ):
            check_wires(model=model)
            check_text("text", text)
            if model.loaded.text_resident is not None:
                host.load_residents([model.loaded.text_resident])
            prompt = model.model.encode_prompt(text)
        notes = "\n".join(shortened(note) for note in prompt.notes) or "prompt encoded"
        host.show_text(notes)
        return io.NodeOutput(prompt, ui={"text": (notes,)})


def shortened(note: str, limit: int = 300) -> str:
    """A very long prompt makes very long notes."""
    return note if len(note) <= limit else f"{note[:limit]} … ({len(note) - limit} characters more)"
