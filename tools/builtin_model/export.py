"""Checkpoints of the training to the two files that the package loads, float16."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...model_loaders.denoiser import Denoiser
from .loop import averaged_state
from .network import Network, Size
from .origin import fingerprint
from .selection import reading
from .tokenise import Lessons
from .tokenizer_network import DECODER, ENCODER, TokenizerNetwork, TokenizerSize

TRANSFORMER, TOKENIZER = "builtin_ar.safetensors", "builtin_vq.safetensors"


def load_tokenizer_network(run: Path, size: TokenizerSize) -> TokenizerNetwork:
    """The tokenizer as trained so far, with averaged weights."""
    network = TokenizerNetwork(size)
    network.load_state_dict(averaged_state(run))
    return network.eval()


def write_tokenizer(path: Path, network: TokenizerNetwork, made: Mapping[str, object]) -> None:
    kept = {
        name: weight
        for name, weight in network.state_dict().items()
        if name.startswith(("encoder.", "decoder.")) or name == "codebook"
    }
    metadata = {
        "family": "builtin_vq",
        "factor": "8",
        "encoder": json.dumps(ENCODER),
        "decoder": json.dumps(DECODER),
        "made": json.dumps(made),
    }
    _write(path, kept, metadata)


def write_transformer(
    path: Path,
    network: Network,
    size: Size,
    lessons: Lessons,
    made: Mapping[str, object],
    denoiser: Denoiser | None = None,
    denoiser_made: Mapping[str, object] | None = None,
) -> None:
    weights = network.state_dict()
    metadata = {
        "config": json.dumps(size.settings()),
        "words": json.dumps(lessons.words),
        "prompts": json.dumps(reading(lessons.words, lessons.about)),
        "made": json.dumps(made),
    }
    if denoiser is not None:
        weights |= {f"denoiser.{name}": weight for name, weight in denoiser.state_dict().items()}
        noise = {"smallest": denoiser.config.smallest, "largest": denoiser.config.largest}
        metadata["denoising"] = json.dumps(noise | {"made": denoiser_made})
    _write(path, weights, metadata)


def _write(path: Path, weights: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    halves = {name: weight.detach().cpu().to(torch.float16).contiguous() for name, weight in weights.items()}
    metadata = {"format": "pt"} | metadata
    if path.exists() and _holds(path, halves, metadata):
        return  # what was sampled with this file is found again by its hash
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    save_file(halves, part, metadata)
    os.replace(part, path)


def _holds(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bool:
    """Whether the file says just this; a denoiser that was trained for these weights may be there already."""
    try:
        with safe_open(path, "pt") as file:
            said = file.metadata()
        found = load_file(path)
    except SafetensorError:
        return False
    if "denoising" not in metadata:
        said.pop("denoising", None)
        found = {name: weight for name, weight in found.items() if not name.startswith("denoiser.")}
    return said == metadata and fingerprint(found) == fingerprint(weights)
