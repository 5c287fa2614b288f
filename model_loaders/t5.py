"""Caption features of a T5 encoder (flan-t5-xl), from a local folder in the Hugging Face layout.

The classes are those of `transformers`, filled by our own strict reader: nothing is downloaded, no code from
the folder runs, and a damaged file is one sentence. `transformers` is imported when a text encoder is loaded:
all other models work without it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .captions import clean_caption
from .checkpoint import Checkpoint, open_checkpoint
from .companions import address
from .errors import CheckpointError, DependencyError, PromptError
from .strict import assign
from .text_tokenizer import read_text, read_tokenizer

REPOSITORY = "google/flan-t5-xl"
LENGTH = 120  # tokens of a caption, padding and end included
LONGEST = (
    5000  # characters that are looked at: far more than LENGTH tokens, and cleaning stays under a second
)
SIZES = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")
OPTIONS = {  # what else shapes the encoder, with T5's own defaults
    "feed_forward_proj": "relu",
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "layer_norm_epsilon": 1e-6,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
EMBEDDINGS = ("shared.weight", "encoder.embed_tokens.weight")  # one table under two names


@dataclass(frozen=True)
class TextFeatures:
    """A caption as the image model reads it: padding first, then the tokens in their order."""

    text: str  # after cleaning
    features: Tensor  # [LENGTH, width] float32 CPU, zero where there is padding
    mask: Tensor  # [LENGTH] bool, true at tokens
    notes: tuple[str, ...]  # what the user should know

    @property
    def valid(self) -> Tensor:
        """Features of the tokens alone: [n, width]."""
        return self.features[self.mask]


class TextEncoder:
    def __init__(self, module: nn.Module, tokenizer: Any, name: str) -> None:
        self.module = module
        self.name = name
        self._tokenizer = tokenizer
        self.width: int = module.config.d_model

    @torch.no_grad()
    def encode(self, text: str, device: torch.device | str | None = None) -> TextFeatures:
        """Features of one prompt, computed on `device` (default: where the weights are)."""
        ids, cleaned, notes = self._tokens(text)
        config = self.module.config
        device = next(self.module.parameters()).device if device is None else torch.device(device)
        padding = LENGTH - len(ids)
        # The encoder was used with padding on the right; the image model wants it on the left, order kept.
        rows = torch.tensor([ids + [config.pad_token_id] * padding], device=device)
        mask = torch.arange(LENGTH, device=device) < len(ids)
        hidden = self.module(input_ids=rows, attention_mask=mask[None].long()).last_hidden_state[0]
        features = (hidden.float() * mask[:, None]).roll(padding, 0)
        return TextFeatures(cleaned, features.cpu(), mask.roll(padding).cpu(), notes)

    def _tokens(self, text: str) -> tuple[list[int], str, tuple[str, ...]]:
        """Token ids with the end token, at most LENGTH; the cleaned text; notes."""
        cleaned = clean_caption(text[:LONGEST])
        if text.strip() and not cleaned:
            raise PromptError(
                f"nothing is left of the prompt {text.strip()[:60]!r} after the cleaning that the model's "
                "training captions went through (links, file names, serial numbers and Chinese characters "
                "are dropped): describe the picture in English words"
            )
        encoding = self._tokenizer.encode(cleaned, add_special_tokens=False)
        notes = []
        if cleaned != " ".join(text.lower().split()):
            notes.append(f'prompt read as "{cleaned}"')
        unknown = encoding.tokens.count("<unk>")
        if unknown:
            notes.append(f"{unknown} parts of the prompt are unknown to the text encoder")
        room = LENGTH - 1
        if len(encoding.ids) > room or len(text) > LONGEST:
            notes.append(f"prompt cut to its first {room} tokens of {len(encoding.ids)}")
        return encoding.ids[:room] + [self.module.config.eos_token_id], cleaned, tuple(notes)


def load_text_encoder(
    path: str | os.PathLike[str], *, device: torch.device | str, dtype: torch.dtype
) -> TextEncoder:
    """Load the encoder in a folder with config.json, tokenizer.json and weights, or the weight file there."""
    path = Path(path)
    checkpoint = open_checkpoint(path)
    module_class, settings = _libraries()
    folder = path if path.is_dir() else path.parent
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    config = settings(**_settings(checkpoint), use_cache=False, is_encoder_decoder=False, dropout_rate=0.0)
    if tokenizer.get_vocab_size() > config.vocab_size:
        raise CheckpointError(
            f"{folder}: tokenizer.json and the model do not belong together, they have "
            f"{tokenizer.get_vocab_size()} and {config.vocab_size} tokens"
        )
    with torch.device("meta"):
        module = module_class(config)
    module.set_input_embeddings(module.shared)  # one table, whatever version ties it how
    table = next((name for name in EMBEDDINGS if name in checkpoint), EMBEDDINGS[0])
    names = {name: table if name in EMBEDDINGS else name for name in module.state_dict()}
    # In float16 the last matrix of a block overflows; transformers keeps it in float32 too.
    sensitive = (lambda name: name.endswith(".wo.weight")) if dtype == torch.float16 else (lambda name: False)
    assign(module, checkpoint, names, device=device, dtype=dtype, ignore=_not_encoder, keep_float32=sensitive)
    return TextEncoder(module.eval(), tokenizer, checkpoint.description)


def _not_encoder(name: str) -> bool:
    return name.startswith(("decoder.", "lm_head.")) or name in EMBEDDINGS


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """The part of config.json that shapes the encoder."""
    config = checkpoint.config
    if config is None:
        raise CheckpointError(
            f"{checkpoint.path}: config.json is missing beside the weights of the text encoder. flan-t5-xl's "
            f"is at {address(REPOSITORY, 'config.json')}"
        )
    if config.get("model_type") != "t5":
        found = config.get("model_type")
        raise CheckpointError(f"{checkpoint.path}: a T5 text encoder is needed, config.json says {found!r}")
    wrong = [key for key in SIZES if not isinstance(config.get(key), int) or not 0 < config[key] < 10**7]
    values = {key: config.get(key, default) for key, default in OPTIONS.items()}
    wrong += [key for key, default in OPTIONS.items() if not isinstance(values[key], type(default))]
    if wrong:
        raise CheckpointError(f"{checkpoint.path}: config.json has no usable {', '.join(wrong)}")
    layers = checkpoint.count("encoder.block.")
    if config["num_layers"] != layers:
        raise CheckpointError(
            f"{checkpoint.path}: config.json says {config['num_layers']} layers, the weights have {layers}"
        )
    return {key: config[key] for key in SIZES} | values


def _read_tokenizer(path: Path) -> Any:
    source = f"flan-t5-xl's is at {address(REPOSITORY, 'tokenizer.json')}"
    if not path.is_file():
        raise CheckpointError(f"{path} is missing. {source}")
    try:
        return read_tokenizer(read_text(path), str(path))
    except CheckpointError as error:
        raise CheckpointError(f"{error}. {source}") from error


def _libraries() -> tuple[Any, Any]:
    try:
        from transformers import T5Config, T5EncoderModel
    except (ImportError, RuntimeError, AttributeError, OSError) as error:
        # transformers imports its parts late and reports a broken one in several ways.
        module = getattr(error, "name", None) or "transformers"
        raise DependencyError(
            f"text prompts need the Python packages transformers and tokenizers, but {module} does not "
            f"import ({error}). Install them for the Python that runs here: "
            f'"{sys.executable}" -m pip install --upgrade transformers tokenizers'
        ) from error
    return T5EncoderModel, T5Config
