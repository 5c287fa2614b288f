"""Load AR Image Model: from the names in the widgets to a model and its image tokenizer."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakValueDictionary

import torch
from comfy_api.latest import io

from ..model_loaders.checkpoint import open_checkpoint
from ..model_loaders.companions import PICTURES, where_from
from ..model_loaders.float8 import float8_operations
from ..model_loaders.image_model import ImageModel
from ..model_loaders.load import BUILTIN_MODEL, load_image_model
from ..model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from . import host, model_choices, sockets
from .errors import explained
from .inputs import one_of
from .model_files import signature
from .tokenizer_search import belongs, choice_words, described, find_tokenizer
from .values import LoadedModel, ModelValue, TokenizerValue

BUILTIN = "built-in (emoji and flags)"
AUTO, NONE = "auto", "none"
DTYPES = [AUTO, *host.WIDGET_DTYPES, host.FLOAT8]
MEMORY_ADVICE = (
    "Choose dtype bfloat16, float16 or float8 weights, unload other models (the Unload Models button), or "
    "start ComfyUI with --lowvram."
)

# What is loaded now, so that a second loader node does not read the same files again. An entry lives as long
# as someone holds it, which ComfyUI's cache of node results does.
_models: WeakValueDictionary[tuple, LoadedModel] = WeakValueDictionary()
_tokenizers: WeakValueDictionary[tuple, TokenizerValue] = WeakValueDictionary()


class JacobiARLoadModel(io.ComfyNode):
    NAME = "Load AR Image Model"

    @classmethod
    def define_schema(cls) -> io.Schema:
        files = list(model_choices.models().files)
        tokenizers = list(model_choices.tokenizers().files)
        encoders = list(model_choices.text_encoders().files)
        return io.Schema(
            node_id="JacobiARLoadModel",
            display_name=cls.NAME,
            category="Jacobi AR/loaders",
            description="Loads an autoregressive image model and the image tokenizer that turns its tokens "
            "into pictures. The built-in model needs no download. Others go into models/ar_image; what a "
            "file is shows by its content.",
            inputs=[
                io.Combo.Input(
                    "model",
                    options=[BUILTIN, *files],
                    default=BUILTIN,
                    tooltip="The model: the built-in one (default), or a file or folder in "
                    "models/ar_image or in a folder of another package for these models, such as "
                    "models/Janus-Pro. Press R after adding files.",
                ),
                io.Combo.Input(
                    "tokenizer",
                    options=[AUTO, BUILTIN, *tokenizers],
                    default=AUTO,
                    tooltip="The image tokenizer (VQ). auto (default): the one that belongs to the model, "
                    "looked for beside it and in models/ar_image and models/vae. Choose a file where several "
                    "fit.",
                ),
                io.Combo.Input(
                    "text_encoder",
                    options=[AUTO, NONE, *encoders],
                    default=AUTO,
                    tooltip="Only for models that read text through a separate encoder (LlamaGen t2i: "
                    "flan-t5-xl, as a folder in models/text_encoders). auto (default): the first T5 folder "
                    "there whose width fits the model, if it needs one. none: load without.",
                ),
                io.Combo.Input(
                    "dtype",
                    options=DTYPES,
                    default=AUTO,
                    tooltip="Precision of the model. auto (default): what ComfyUI computes in on this "
                    "device, float32 on a CPU. float32: most faithful, twice the memory. bfloat16: half "
                    "the memory. float16: the same, but some models overflow. float8 weights: half of "
                    "bfloat16 again, close to it but not the same pictures; saves memory, not time, and is "
                    "slow on a CPU. auto leaves a file that is in float8 so. The image tokenizer always "
                    "works in float32.",
                ),
            ],
            outputs=[
                sockets.Model.Output(
                    display_name="model", tooltip="The model, for Encode AR Prompt and Generate Image Tokens."
                ),
                sockets.Tokenizer.Output(
                    display_name="tokenizer", tooltip="Its image tokenizer, for Decode Image Tokens."
                ),
            ],
        )

    @classmethod
    def validate_inputs(cls, model: object) -> bool:
        """Takes the check of the list of models from ComfyUI: our own, at the run, says where to get one."""
        return True

    @classmethod
    def fingerprint_inputs(cls, model: str, tokenizer: str, text_encoder: str, dtype: str) -> str:
        """Changes with the files, and with those that "auto" may choose, be they replaced or added."""
        models, tokenizers, encoders = (
            choices.files
            for choices in (model_choices.models(), model_choices.tokenizers(), model_choices.text_encoders())
        )
        places = ((model, models), (tokenizer, tokenizers), (text_encoder, encoders))
        paths = [files[name] for name, files in places if isinstance(name, str) and name in files]
        own = models.get(model) if isinstance(model, str) else None  # the built-in model needs nothing else
        if own and tokenizer == AUTO and not model_choices.has_tokenizer(own):
            paths += [path for path in tokenizers.values() if model_choices.has_tokenizer(path)]
        if own and text_encoder == AUTO and (encoder := encoder_path(own, AUTO)):
            paths.append(encoder)
        return repr([signature(path) for path in paths])

    @classmethod
    def execute(cls, model: str, tokenizer: str, text_encoder: str, dtype: str) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            one_of("dtype", dtype, DTYPES)
            path = model_path(model)
            loaded = load_model(path, encoder_path(path, text_encoder), dtype)
            vq = load_tokenizer_for(loaded.model, model, tokenizer)
            return io.NodeOutput(ModelValue(loaded, vq), vq)


def model_path(choice: str) -> Path:
    return BUILTIN_MODEL if choice == BUILTIN else model_choices.models().pick("model", choice)


def encoder_path(model: Path, choice: str) -> Path | None:
    if choice == NONE:
        return None
    if choice != AUTO:
        return model_choices.text_encoders().pick("text_encoder", choice)
    return None if model == BUILTIN_MODEL else model_choices.text_encoder_for(model_choices.seen(model))


def load_model(path: Path, encoder: Path | None, choice: str) -> LoadedModel:
    """`choice` is the dtype widget's."""
    key = (signature(path), encoder and signature(encoder), choice)
    loaded = _models.get(key)
    if loaded is None:
        devices = host.transformer_devices()
        dtype = host.choose_dtype(choice)
        operations = host.operations(dtype)
        if choice == host.FLOAT8 or (choice == AUTO and open_checkpoint(path).in_float8):
            # Before the scale, a product may be larger than float16 holds.
            dtype = torch.float32 if dtype == torch.float16 else dtype
            operations = float8_operations(operations)
        model = load_image_model(
            path, device=devices[1], dtype=dtype, operations=operations, text_encoder=encoder
        )
        text_encoder = getattr(model, "text_encoder", None)
        loaded = LoadedModel(
            model,
            host.Resident(model.transformer, devices),
            text_encoder and host.Resident(text_encoder.module, host.text_encoder_devices(), whole=True),
        )
        _models[key] = loaded
    return loaded


def load_tokenizer_for(model: ImageModel, model_choice: str, choice: str) -> TokenizerValue:
    """The tokenizer of the widget, checked against the model, or for "auto" the one that fits."""
    choices = model_choices.tokenizers()
    if choice == BUILTIN or (choice == AUTO and model_choice == BUILTIN):
        vq = load_tokenizer(BUILTIN_TOKENIZER)
    elif choice != AUTO:
        vq = load_tokenizer(choices.pick("tokenizer", choice))
    else:
        found = find_tokenizer(
            model,
            choices.files[model_choice],
            choices.files,
            {BUILTIN: BUILTIN_TOKENIZER},
            model_choices.peek,
        )
        if found is None:
            others = ", ".join(name for name in choices.files if name != model_choice) or "no other file"
            source = where_from(model.family, PICTURES) or "Put the VQ file that came with the model there"
            raise ValueError(
                f"no image tokenizer for {model.name} ({described(model.tokenizer_kind, model.vocabulary)}) "
                f"was found. Looked at {others} in {' and '.join(map(str, choices.folders))}. {source}."
            )
        tell(model, choice_words(model, found, choices.files, model_choices.peek))
        return load_tokenizer(found)
    if not belongs(vq.tokenizer, model):
        raise ValueError(
            f'the tokenizer "{choice}" ({described(vq.tokenizer.kind, vq.tokenizer.vocabulary)}) does not '
            f'belong to {model.name} ({described(model.tokenizer_kind, model.vocabulary)}). Choose "auto", '
            "or the tokenizer that came with the model."
        )
    return vq


def tell(model: ImageModel, tokenizer: str) -> None:
    """On the node: what was chosen by itself, and what the file leaves to the person."""
    host.show_text("\n".join(filter(None, [tokenizer, model.grid_words()])))


def load_tokenizer(path: Path) -> TokenizerValue:
    key = signature(path)
    loaded = _tokenizers.get(key)
    if loaded is None:
        devices = host.tokenizer_devices()
        tokenizer = load_image_tokenizer(
            path, device=devices[1], dtype=torch.float32, operations=host.operations(torch.float32)
        )
        loaded = TokenizerValue(tokenizer, host.Resident(tokenizer.module, devices))
        _tokenizers[key] = loaded
    return loaded
