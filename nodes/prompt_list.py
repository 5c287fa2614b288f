"""Prompt List: several prompts from one text. ComfyUI then runs what follows once for each."""

from __future__ import annotations

from comfy_api.latest import io

from . import host
from .errors import explained
from .inputs import check_text

MOST_PROMPTS = 1000
COMMENT = "#"


class JacobiARPromptList(io.ComfyNode):
    NAME = "Prompt List"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARPromptList",
            display_name=cls.NAME,
            category="Jacobi AR/sampling",
            description="One prompt a line. Connect it to text of Encode AR Prompt: that node and all "
            "behind it run once for each prompt, with the same settings and seeds.",
            inputs=[
                io.String.Input(
                    "prompts",
                    multiline=True,
                    default="red heart\noctopus\nflag japan",
                    tooltip="One prompt a line. Empty lines are left out, and lines that start with #.",
                ),
            ],
            outputs=[
                io.String.Output(
                    display_name="text", is_output_list=True, tooltip="The prompts, one after another."
                ),
            ],
        )

    @classmethod
    def execute(cls, prompts: str) -> io.NodeOutput:
        with explained(cls.NAME):
            found = prompt_lines(prompts)
        text = f"{len(found)} prompts" if len(found) > 1 else "1 prompt"
        host.show_text(text)
        return io.NodeOutput(found, ui={"text": (text,)})


def prompt_lines(text: str) -> list[str]:
    """The prompts of a text. ValueError where there is none: ComfyUI would run nothing, in silence."""
    check_text("prompts", text)
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith(COMMENT)]
    if not 0 < len(found) <= MOST_PROMPTS:
        raise ValueError(
            f"prompts hold {len(found)} prompts; write 1 to {MOST_PROMPTS}, one a line. (For a picture "
            "without a prompt leave the text of Encode AR Prompt empty.)"
        )
    return found
