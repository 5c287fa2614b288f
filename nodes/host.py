"""All that this package asks of ComfyUI: folders, devices, memory, progress, interruption.

No other file imports it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import comfy.model_management as memory
import comfy.ops
import comfy.utils
import folder_paths
import torch
from comfy.cli_args import LatentPreviewMethod, args
from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io, ui
from comfy_execution.utils import get_executing_context
from PIL import Image
from server import PromptServer
from torch import Tensor, nn

from .node_text import wrapped

MODEL_FOLDER = "ar_image"
WIDGET_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FLOAT8 = "float8 weights (bfloat16 arithmetic)"
# Where other packages for these models keep them.
KNOWN_FOLDERS = ("Janus-Pro", "Janus", "deepseek-ai", "lumina_mgpt", "emu3", "Emu3", "emu35", "Emu3.5")
FLOATS = [torch.bfloat16, torch.float16, torch.float32]  # in the order of preference


# ---- folders -----------------------------------------------------------------------------------------------


def register_model_folder() -> None:
    """Adds models/ar_image after what extra_model_paths.yaml may already have put under the same key."""
    folder_paths.add_model_folder_path(MODEL_FOLDER, str(Path(folder_paths.models_dir, MODEL_FOLDER)))


def model_roots() -> list[Path]:
    return [Path(path) for path in folder_paths.get_folder_paths(MODEL_FOLDER)]


def known_model_roots() -> dict[str, list[Path]]:
    """Folders in which people already have such models, by the name that is shown before what lies there:
    those of other packages below models/, and what extra_model_paths.yaml puts under the same names."""
    roots: dict[str, list[Path]] = {}
    for name in KNOWN_FOLDERS:
        places = [str(Path(folder_paths.models_dir, name))]
        if name in folder_paths.folder_names_and_paths:
            places += folder_paths.get_folder_paths(name)
        roots[name] = [Path(place) for place in dict.fromkeys(places)]
    return roots


def picture_tokenizer_roots() -> dict[str, list[Path]]:
    """Folders that hold image tokenizers among much else."""
    return {"vae": [Path(path) for path in folder_paths.get_folder_paths("vae")]}


def text_encoder_roots() -> list[Path]:
    return [Path(path) for path in folder_paths.get_folder_paths("text_encoders")]


def token_roots() -> dict[str, Path]:
    """Where token grids are looked for, by what ComfyUI writes behind the names of files there."""
    return {
        "": Path(folder_paths.get_input_directory()),
        " [output]": Path(folder_paths.get_output_directory()),
    }


def saving_place(prefix: str, height: int = 0, width: int = 0) -> tuple[Path, str, int, str]:
    """(folder, start of the file name, first free number, folder below the output folder), as Save Image has
    them; `prefix` was checked."""
    folder, name, counter, subfolder, _ = folder_paths.get_save_image_path(
        prefix, folder_paths.get_output_directory(), width, height
    )
    return Path(folder), name, counter, subfolder


def saves_metadata() -> bool:
    """Whether pictures may tell how they were made (not with --disable-metadata)."""
    return not args.disable_metadata


# ---- devices and memory ------------------------------------------------------------------------------------


class Holder(nn.Module):
    """ComfyUI sets `device` on what it manages; the modules of transformers have a read-only one."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.device: torch.device | None = None


class Resident:
    """A module whose weights ComfyUI moves between its devices.

    In part, where memory is short, if its layers are of `operations`; `whole` is for other modules.
    """

    def __init__(
        self, module: nn.Module, devices: tuple[torch.device, torch.device], whole: bool = False
    ) -> None:
        managed = Holder(module) if whole else module
        self.patcher = ModelPatcher(managed, load_device=devices[0], offload_device=devices[1])
        self.whole = whole

    @property
    def device(self) -> torch.device:
        """Where the module computes, wherever its weights are just now."""
        return self.patcher.load_device


def transformer_devices() -> tuple[torch.device, torch.device]:
    """(computes on, waits on)"""
    return memory.get_torch_device(), memory.unet_offload_device()


def tokenizer_devices() -> tuple[torch.device, torch.device]:
    return memory.vae_device(), memory.vae_offload_device()


def text_encoder_devices() -> tuple[torch.device, torch.device]:
    return memory.text_encoder_device(), memory.text_encoder_offload_device()


def load_residents(residents: Sequence[Resident], memory_required: int = 0) -> None:
    """Brings modules to their devices and keeps `memory_required` bytes free beside them.

    Called at the start of every run: another node may have pushed the modules out. ComfyUI streams the
    weights of its own layer classes when not all fit; it leaves anything else, such as a parameter of a
    container, where it is, so those few are brought along here.
    """
    memory.load_models_gpu(
        [resident.patcher for resident in residents],
        memory_required=memory_required,
        force_full_load=any(resident.whole for resident in residents),
    )
    for resident in residents:
        for module in resident.patcher.model.modules():
            if not hasattr(module, "comfy_cast_weights"):
                move_own_tensors(module, resident.device)


def is_short_of(device: torch.device, needed: int) -> bool:
    """Whether a GPU has less memory free than that. A CPU's is never counted: other programs share it."""
    return not memory.is_device_cpu(device) and memory.get_free_memory(device) < needed


def room_for_run(resident: Resident, weights: int) -> int:
    """Bytes that a run may take beside the weights of its model.

    On a GPU all that ComfyUI can make free by unloading, less the weights. Where these fill it, half of it:
    they are then brought in one at a time, at a cost that larger batches share.
    """
    device = resident.device
    free = memory.get_free_memory(device)
    if memory.is_device_cpu(device):
        return int(free)
    held = [loaded.model for loaded in memory.current_loaded_models if loaded.device == device]
    held_bytes = sum(patcher.loaded_size() for patcher in held if patcher is not None)
    room = free + held_bytes - memory.extra_reserved_memory()
    return int(max(room - weights, room // 2))


def forget_leftovers() -> None:
    """Gives memory that nothing uses any more back to the device."""
    memory.soft_empty_cache()


def move_own_tensors(module: nn.Module, device: torch.device) -> None:
    """Moves the parameters and buffers of this very module, not those of its children."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        if parameter.device != device:
            setattr(module, name, nn.Parameter(parameter.to(device), requires_grad=False))
    for name, buffer in list(module.named_buffers(recurse=False)):
        if buffer.device != device:
            setattr(module, name, buffer.to(device))


def choose_dtype(choice: str) -> torch.dtype:
    """What the widget's dtype computes in; for "auto" what ComfyUI computes in on this device, float32 on a
    CPU. Float8 is for weights alone, and computes in float32 where the device has no bfloat16."""
    device = memory.get_torch_device()
    if choice == FLOAT8:
        usable = memory.is_device_cpu(device) or memory.should_use_bf16(device)
        return torch.bfloat16 if usable else torch.float32
    if choice != "auto":
        return WIDGET_DTYPES[choice]
    weights = memory.unet_dtype(device=device, supported_dtypes=FLOATS)
    return memory.unet_manual_cast(weights, device, supported_dtypes=FLOATS) or weights


def operations(dtype: torch.dtype) -> Any:
    """The namespace of layer classes whose weights ComfyUI can stream."""
    device = memory.get_torch_device()
    return comfy.ops.pick_operations(dtype, dtype, load_device=device, disable_fast_fp8=True)


def to_output(images: Tensor) -> Tensor:
    """[B, height, width, 3] float32 on the device where ComfyUI wants what nodes return."""
    return images.to(memory.intermediate_device(), torch.float32)


def preview_of(images: Tensor, node: type[io.ComfyNode]) -> dict[str, Any]:
    """What makes the page show these pictures on the node that made them."""
    return ui.PreviewImage(images, cls=node).as_dict()


def resized(images: Tensor, height: int, width: int, crop: bool) -> Tensor:
    """Pictures [B, height, width, 3] of another size (Lanczos), after cropping the middle to its proportions,
    or stretched."""
    pixels = images.movedim(-1, 1)
    changed = comfy.utils.common_upscale(pixels, width, height, "lanczos", "center" if crop else "disabled")
    return changed.movedim(1, -1)


# ---- while a node runs -------------------------------------------------------------------------------------


def stop_if_interrupted() -> None:
    memory.throw_exception_if_processing_interrupted()


def previews_wanted() -> bool:
    """Whether the person asked for live previews (--preview-method, or the setting that writes to it)."""
    return args.preview_method != LatentPreviewMethod.NoPreviews


def preview_side() -> int:
    return args.preview_size


def show_text(text: str) -> None:
    """Shows text on the running node, in lines that fit, in the browser that queued it."""
    server, context = PromptServer.instance, get_executing_context()
    if context is not None and server.client_id is not None and hasattr(server, "send_progress_text"):
        # "Nodes 2.0" reads it as Markdown, where two spaces keep a line's end; the classic page shows none.
        lines = wrapped(text).replace("\n", "  \n")
        server.send_progress_text(lines, context.node_id, server.client_id)


class Progress:
    """The bar, the line of text and the preview of the running node, sent at most ten times a second."""

    interval = 0.1

    def __init__(self, total: int) -> None:
        self.bar = comfy.utils.ProgressBar(total)
        self.total = total
        self.shown = 0.0

    def update(self, value: int, text: str = "", preview: Image.Image | None = None) -> None:
        now = time.monotonic()
        if preview is None and value < self.total and now - self.shown < self.interval:
            return
        self.shown = now
        self.bar.update_absolute(value, self.total, preview and ("JPEG", preview, max(preview.size)))
        if text:
            show_text(text)
