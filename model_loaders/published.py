"""The published models by the names under which the loader lists them, and what to download for each.

A workflow names a model that its reader may not have yet: the message then says which repository to download,
into which folder, and what the model needs besides. Nothing here downloads anything.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .companions import ENCODER, PICTURES, TEXT, address, where_from

FOLDER = "models/ar_image"
# Name -> repository, family, and what does not lie in that repository.
Entry = tuple[str, str, tuple[str, ...]]
REPOSITORIES: dict[str, Entry] = {
    "Janus-1.3B": ("deepseek-ai/Janus-1.3B", "Janus", ()),
    "Janus-Pro-1B": ("deepseek-ai/Janus-Pro-1B", "Janus-Pro-1B", ()),
    "Janus-Pro-7B": ("deepseek-ai/Janus-Pro-7B", "Janus-Pro-7B", ()),
    "Lumina-mGPT-7B-512": ("Alpha-VLLM/Lumina-mGPT-7B-512", "Lumina-mGPT", (TEXT, PICTURES)),
    "Lumina-mGPT-7B-768": ("Alpha-VLLM/Lumina-mGPT-7B-768", "Lumina-mGPT", (PICTURES,)),
    "Lumina-mGPT-7B-768-Omni": ("Alpha-VLLM/Lumina-mGPT-7B-768-Omni", "Lumina-mGPT", (TEXT, PICTURES)),
    "Lumina-mGPT-7B-1024": ("Alpha-VLLM/Lumina-mGPT-7B-1024", "Lumina-mGPT", (TEXT, PICTURES)),
    "Lumina-mGPT-2.0": ("Alpha-VLLM/Lumina-mGPT-2.0", "Lumina-mGPT 2", (PICTURES,)),
    "Anole-7b-v0.1-hf": ("leloy/Anole-7b-v0.1-hf", "Anole", ()),
    "Anole-7b-v0.1": ("GAIR/Anole-7b-v0.1", "Anole", ()),
    "Emu3-Gen": ("BAAI/Emu3-Gen", "Emu3", (PICTURES,)),
}
FILES: dict[str, Entry] = {
    **{
        f"c2i_{size}.pt": ("FoundationVision/LlamaGen", "LlamaGen c2i", (PICTURES,))
        for size in ("B_256", "B_384", "L_256", "L_384", "XL_384", "XXL_384", "3B_384")
    },
    **{
        f"t2i_XL_{stage}.pt": ("peizesun/llamagen_t2i", "LlamaGen t2i", (PICTURES, ENCODER))
        for stage in ("stage1_256", "stage2_512")
    },
}


def where_to_get(shown: object) -> str:
    """What to download for the model of that name, as sentences without the last full stop; empty where none
    of this name is known. In a name with folders the first part that is known counts."""
    parts = PurePosixPath(shown).parts if isinstance(shown, str) else ()
    name = next((part for part in parts if part in REPOSITORIES or part in FILES), None)
    return "" if name is None else ". ".join(steps(name))


def steps(name: str, *others: str) -> list[str]:
    """What to download for a published model, the model first; `others` are names of the same repository of
    which one will do as well."""
    if name in FILES:
        repository, family, roles = FILES[name]
        if others:
            listed = f"{', '.join((name, *others[:-1]))} or {others[-1]}"
            model = f"Download {listed} from {address(repository)} into the folder {FOLDER}"
        else:
            model = f"Download {address(repository, name)} into the folder {FOLDER}"
    else:
        repository, family, roles = REPOSITORIES[name]
        model = f"Download the whole repository {address(repository)} into the folder {FOLDER}/{name}"
    return [model, *(where_from(family, role) for role in roles)]


def everything() -> dict[str, list[str]]:
    """What can be downloaded: its name -> the steps. The files of one repository are told together."""
    together: dict[Entry, list[str]] = {}
    for name, entry in FILES.items():
        together.setdefault(entry, []).append(name)
    files = {family: steps(*names) for (_, family, _), names in together.items()}
    return files | {name: steps(name) for name in REPOSITORIES}
