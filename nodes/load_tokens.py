"""Load Token Grid: tokens from a file that Save Token Grid wrote."""

from __future__ import annotations

import hashlib
from pathlib import Path

from comfy_api.latest import io

from . import host, sockets
from .errors import explained
from .inputs import shown
from .token_files import candidates, read_tokens, token_choices
from .values import TokenGridValue

EXAMPLE = "example (built-in model)"
MOST_PROMPT = 300  # characters of a prompt on the node
EXAMPLE_FILE = Path(__file__).with_name("example_tokens.safetensors")


class JacobiARLoadTokens(io.ComfyNode):
    NAME = "Load Token Grid"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARLoadTokens",
            display_name=cls.NAME,
            category="Jacobi AR/tokens",
            description="Loads tokens that Save Token Grid saved, from ComfyUI's output or input folder. "
            "They need the image tokenizer that they were made for; another one is refused.",
            inputs=[
                io.Combo.Input(
                    "file",
                    options=[EXAMPLE, *token_choices(host.token_roots())],
                    default=EXAMPLE,
                    tooltip="A token grid in ComfyUI's input folder, or one of the output folder, marked "
                    "[output]. The example (default) is a picture of the built-in model. Press R after "
                    "saving or copying files.",
                ),
            ],
            outputs=[
                sockets.Tokens.Output(
                    display_name="tokens",
                    tooltip="The tokens, for Decode Image Tokens, Keep Rows, Token Mask or Compare Token "
                    "Grids.",
                ),
            ],
        )

    @classmethod
    def validate_inputs(cls, file: object) -> bool:
        """Takes the check of the list of files from ComfyUI: our own, at the run, says where to look."""
        return True

    @classmethod
    def fingerprint_inputs(cls, file: str) -> str:
        """Changes with the content of the file."""
        path = choices().get(file) if isinstance(file, str) else None
        return hashlib.sha256(path.read_bytes()).hexdigest() if path is not None else ""

    @classmethod
    def execute(cls, file: str) -> io.NodeOutput:
        with explained(cls.NAME):
            tokens = read_tokens(chosen(file))
        text = described(tokens)
        host.show_text(text)
        return io.NodeOutput(tokens, ui={"text": (text,)})


def choices() -> dict[str, Path]:
    return {EXAMPLE: EXAMPLE_FILE, **token_choices(host.token_roots())}


def chosen(file: object) -> Path:
    """The path behind a shown name: only what is listed is opened."""
    found = choices()
    if isinstance(file, str) and file in found:
        return found[file]
    if isinstance(file, str) and file in candidates(host.token_roots()):
        raise ValueError(
            f"{shown(file)} is there, but is no token grid, or its header is damaged. Save it anew with Save "
            "Token Grid, or copy it again."
        )
    folders = " and ".join(str(root) for root in host.token_roots().values())
    others = ", ".join(list(found)[1:6]) or "nothing"
    raise ValueError(
        f"the token grid {shown(file)} was not found. Looked for files of Save Token Grid in {folders} and "
        f"found: {others}. Copy it there, press R to refresh, and choose again."
    )


def described(tokens: TokenGridValue) -> str:
    """How the pictures were made, for the node."""
    pictures, rows, cols = tokens.tokens.shape
    lines = [
        f"{pictures} picture{'s' if pictures > 1 else ''} of {rows} x {cols} tokens · {tokens.tokenizer.kind}"
    ]
    for facts in tokens.facts[:4]:
        told = [
            shown(facts.prompt, MOST_PROMPT) if facts.prompt else "",
            f"seed {facts.seed}" if facts.seed is not None else "",
        ]
        lines.append(" · ".join(part for part in (*told, facts.decoder or facts.made_by) if part))
    return "\n".join(lines)
