"""What a model needs beside its own weights, and where each of these files is published.

One table, so that every message about a missing file names the file, its public source and the folder that it
belongs into. Nothing here downloads anything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

HUB = "https://huggingface.co"
PICTURES, TEXT, ENCODER = "image tokenizer", "text tokenizer", "text encoder"


@dataclass(frozen=True)
class Companion:
    """Files of one repository; `beside` means the folder of the model itself."""

    files: tuple[str, ...]
    repository: str
    beside: bool = False
    folder: str = "models/ar_image"

    def sentence(self) -> str:
        """What to download, from where, and where to put it."""
        target = "the folder of the model's weights" if self.beside else f"the folder {self.folder}"
        if len(self.files) == 1:
            return f"Download {address(self.repository, self.files[0])} into {target}"
        listed = f"{', '.join(self.files[:-1])} and {self.files[-1]}"
        return f"Download {listed} from {address(self.repository)} into {target}"


@dataclass(frozen=True)
class Inside(Companion):
    """What is published within the model's own weight files."""

    def sentence(self) -> str:
        return (
            f"It is part of the model's own weight files ({', '.join(self.files)}), so these are incomplete, "
            f"or were converted without it. Download all of {address(self.repository)}, or the repository of "
            "the model's size, into one folder in models/ar_image"
        )


# The first whose name begins the family's name counts, so longer names come first.
COMPANIONS: dict[tuple[str, str], Companion] = {
    ("LlamaGen c2i", PICTURES): Companion(("vq_ds16_c2i.pt",), "FoundationVision/LlamaGen"),
    ("LlamaGen t2i", PICTURES): Companion(("vq_ds16_t2i.pt",), "peizesun/llamagen_t2i"),
    ("LlamaGen t2i", ENCODER): Companion(
        ("config.json", "tokenizer.json", "the model-*.safetensors files", "their index"),
        "google/flan-t5-xl",
        folder="models/text_encoders/flan-t5-xl",
    ),
    ("Janus-Pro-7B", TEXT): Companion(("tokenizer.json",), "deepseek-ai/Janus-Pro-7B", beside=True),
    ("Janus-Pro", TEXT): Companion(("tokenizer.json",), "deepseek-ai/Janus-Pro-1B", beside=True),
    ("Janus", PICTURES): Inside(("gen_vision_model",), "deepseek-ai/Janus-Pro-1B", beside=True),
    ("Lumina-mGPT 2", PICTURES): Companion(("movqgan_270M.ckpt",), "ai-forever/MoVQGAN"),
    ("Lumina-mGPT 2", TEXT): Companion(
        ("tokenizer.json", "tokenizer_config.json"), "Alpha-VLLM/Lumina-mGPT-2.0", beside=True
    ),
    ("Lumina-mGPT", PICTURES): Companion(("tokenizer/vqgan.ckpt",), "GAIR/Anole-7b-v0.1"),
    ("Lumina-mGPT", TEXT): Companion(("tokenizer.json",), "Alpha-VLLM/Lumina-mGPT-7B-768", beside=True),
    ("Anole", PICTURES): Companion(("tokenizer/vqgan.ckpt",), "GAIR/Anole-7b-v0.1"),
    ("Anole", TEXT): Companion(("tokenizer/text_tokenizer.json",), "GAIR/Anole-7b-v0.1", beside=True),
    ("Emu3", PICTURES): Companion(
        ("config.json", "model.safetensors"),
        "BAAI/Emu3-VisionTokenizer",
        folder="models/ar_image/Emu3-VisionTokenizer",
    ),
    ("Emu3", TEXT): Companion(("emu3.tiktoken", "emu3_vision_tokens.txt"), "BAAI/Emu3-Gen", beside=True),
}


def companion(family: str, role: str) -> Companion | None:
    """The companion of that role, None where the family needs none or none is published."""
    keys = (key for key in COMPANIONS if key[1] == role and family.startswith(key[0]))
    return next((COMPANIONS[key] for key in keys), None)


def where_from(family: str, role: str) -> str:
    """A sentence without its full stop; empty where nothing is known."""
    found = companion(family, role)
    return found.sentence() if found else ""


def address(repository: str, file: str = "") -> str:
    """A page or a file of the hub, or of its mirror where HF_ENDPOINT names one."""
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return f"{hub}/{repository}" + (f"/resolve/main/{file}" if file else "")
