"""The Python environment that the commands run in: made once in the development folder, then left alone.

Standard library only. Each step leaves a stamp when it is complete (`stamps.py`), so a second run installs
nothing and needs no network, and an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .problem import Problem, last_lines
from .stamps import Stamps, recipe, short_hash

TORCH = "torch==2.13.0"
# What ComfyUI 0.3.75 needs to boot and serve its page, without templates, embedded docs, audio and upscalers.
HOST_REQUIREMENTS = [
    "comfyui-frontend-package==1.32.9",
    "numpy>=1.25",
    "einops",
    "transformers>=4.50.3",
    "tokenizers>=0.13.3",
    "safetensors>=0.4.2",
    "aiohttp>=3.11.8",
    "yarl>=1.18",
    "pyyaml",
    "Pillow",
    "scipy",
    "tqdm",
    "psutil",
    "alembic",
    "SQLAlchemy",
    "av>=14.2.0",
    "pydantic~=2.0",
    "pydantic-settings~=2.0",
    "torchsde",
    "requests",
]
TEST_REQUIREMENTS = ["pytest>=8.0", "hypothesis>=6.0", "ruff>=0.9", "tiktoken>=0.7", "matplotlib>=3.8"]
# Drives an installed Chromium; its own browsers are not downloaded.
BROWSER_REQUIREMENTS = ["playwright>=1.49"]
TORCH_FAMILY = ("torch", "torchvision", "torchaudio")
SHIM_MARK = "# Added by tools/dev.py of ComfyUI-JacobiAR"
TORCHVISION_SHIM = f"""

{SHIM_MARK}: this torchvision was built for another torch, so its compiled
# operators are absent. ComfyUI uses none of them, but the import needs the names of two.
if not _has_ops():
    _names_only = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _names_only.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


@dataclass(frozen=True)
class Wishes:
    """What the person asked for on the command line."""

    folder: Path  # the development folder, `.dev`
    base_python: Path | None = None  # a Python that has torch already
    torch_index: str | None = None


class Environment:
    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        base = wishes.base_python
        name = "venv" if base is None else f"venv-over-{short_hash(str(base))}"
        self.folder = wishes.folder / name
        self.python = python_of(self.folder)
        self.stamps = Stamps(self.folder / "stamps")
        self.log = wishes.folder / "logs" / "install.log"

    def prepare(self, comfyui_requirements: list[str], tests: bool, torchaudio: bool = False) -> None:
        """Make what is missing. `comfyui_requirements` are those of the ComfyUI that will run here, without
        torch and its companions; `torchaudio`: whether it lists that one."""
        self.make_venv()
        self.install_torch()
        self.install("host", comfyui_requirements, "what ComfyUI needs")
        self.install_companion("torchvision", add_shim)
        if torchaudio:
            self.install_companion("torchaudio", remove_compiled)
        if tests:
            self.install("tests", TEST_REQUIREMENTS, "what the tests need")
            self.install("browser", BROWSER_REQUIREMENTS, "the browser driver")

    def make_venv(self) -> None:
        # Any Python will do, so one that another Python made is kept.
        base = self.wishes.base_python or Path(sys.executable)
        made_from = str(self.wishes.base_python or "any Python")
        if self.stamps.done("venv", made_from) and runs(self.python):
            return
        say(f"making a Python environment in {self.folder}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.run_logged(
            [str(base), "-m", "venv", str(self.folder)],
            "the Python environment could not be made",
            "on Debian or Ubuntu install the package python3-venv; elsewhere use a Python that has `venv`.",
        )
        if self.wishes.base_python is not None:
            # Everything the named environment has is seen from here, and nothing is ever installed into it.
            script = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
            library = ask(base, script)
            own = Path(ask(self.python, script))
            (own / "named_environment.pth").write_text(library + "\n", encoding="utf-8")
        self.stamps.write("venv", made_from)

    def install_torch(self) -> None:
        if self.wishes.base_python is not None:
            if not self.stamps.done("torch", "named") and not self.imports("torch"):
                raise Problem(
                    f"{self.wishes.base_python} has no torch that can be imported.",
                    "name a Python that has torch, or leave --python out and an environment is made.",
                )
            self.stamps.write("torch", "named")
            return
        index = self.wishes.torch_index
        made_from = recipe([TORCH, index or "the index that pip is set up for"])
        # A torch that was installed from a named index stays when the option is left out later.
        if self.stamps.done("torch", made_from) or (
            index is None and (self.stamps.folder / "torch").is_file()
        ):
            return
        if index is None and sys.platform == "linux" and not has_nvidia_gpu():
            say(
                "no NVIDIA GPU was found. Where pip's index has only the CUDA build of torch, several GB\n"
                "  are downloaded; --torch-index URL names an index of CPU builds (the PyTorch site has one)"
            )
        source = [] if index is None else ["--index-url", index]
        say("torch is large: this can take minutes")
        self.pip(["install", TORCH, *source], "torch")
        self.stamps.write("torch", made_from)

    def install_companion(self, module: str, mend: Callable[[Path], None]) -> None:
        """ComfyUI imports torchvision at boot, newer ones (0.30) torchaudio too. `mend` is given the folder
        of a wheel that was built for another torch."""
        if self.stamps.done(module, "done"):
            return
        if not self.imports(module):
            if not self.installed_here(module):
                torch = ask(self.python, "import torch; print(torch.__version__)")
                wheel = f"torchvision=={torchvision_for(torch)}" if module == "torchvision" else module
                source = [] if self.wishes.torch_index is None else ["--index-url", self.wishes.torch_index]
                self.pip(["install", "--no-deps", wheel, *source], wheel)
            if not self.imports(module):
                mend(self.folder_of(module))
        if not self.imports(module):
            raise Problem(
                f"{module} cannot be imported by {self.python}, and ComfyUI does not boot without it.",
                f"see why with: {self.python} -c 'import {module}' (it has to fit the installed torch).",
            )
        self.stamps.write(module, "done")

    def installed_here(self, module: str) -> bool:
        script = f"import importlib.util as u; s = u.find_spec('{module}'); print(s.origin if s else '')"
        return Path(ask(self.python, script) or ".").is_relative_to(self.folder)

    def folder_of(self, module: str) -> Path:
        """Where the module lies in this environment; a named one is never changed."""
        if not self.installed_here(module):
            raise Problem(
                f"the {module} of {self.wishes.base_python} does not fit its torch.",
                f"install the {module} that belongs to that torch, or uninstall {module} there.",
            )
        script = f"import importlib.util as u; print(u.find_spec('{module}').origin)"
        return Path(ask(self.python, script)).parent

    def install(self, step: str, requirements: list[str], what: str) -> None:
        made_from = recipe(requirements)
        if self.stamps.done(step, made_from):
            return
        # What depends on torch must fit the one that is there, and never bring another.
        torch = ask(self.python, "import importlib.metadata as m; print(m.version('torch'))")
        constraints = self.folder / "constraints.txt"
        constraints.write_text(f"torch=={torch}\n", encoding="utf-8")
        self.pip(["install", "--constraint", str(constraints), *requirements], what)
        self.stamps.write(step, made_from)

    def pip(self, arguments: list[str], what: str) -> None:
        say(f"installing {what}")
        self.run_logged(
            [str(self.python), "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input"],
            f"pip could not install {what}",
            "check the network, pip's settings (index, proxy) and the free disk space, then run this again:\n"
            "  it goes on where it stopped. If the log says that no release fits, use another Python than\n"
            f"  {version_of(self.wishes.base_python or Path(sys.executable))}: run dev.py with that one.",
        )

    def run_logged(self, command: list[str], failure: str, advice: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with self.log.open("w", encoding="utf-8") as log:
            log.write(" ".join(command) + "\n")
            log.flush()
            try:
                code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
            except OSError as error:
                raise Problem(f"{failure}: {error}", advice) from error
        if code != 0:
            raise Problem(
                f"{failure} (exit code {code}). The end of {self.log}:\n{last_lines(self.log)}", advice
            )
        say(f"  done in {time.monotonic() - start:.0f} s")

    def imports(self, module: str) -> bool:
        return runs(self.python, f"import {module}")


def add_shim(torchvision: Path) -> None:
    extension = torchvision / "extension.py"
    text = extension.read_text(encoding="utf-8")
    if SHIM_MARK not in text:
        extension.write_text(text + TORCHVISION_SHIM, encoding="utf-8")


def remove_compiled(torchaudio: Path) -> None:
    """Its compiled part is loaded at import where it is there, and all that ComfyUI uses is Python."""
    for library in (torchaudio / "lib").iterdir():
        if library.suffix in (".so", ".pyd", ".dll", ".dylib"):
            library.unlink()


def python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def runs(python: Path, script: str = "pass") -> bool:
    try:
        return subprocess.run([str(python), "-c", script], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def ask(python: Path, script: str) -> str:
    """What a line of Python prints in another interpreter."""
    try:
        done = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
        raise Problem(
            f"{python} does not run as it should: {' '.join(detail)}", "name a working Python with --python."
        ) from error
    return done.stdout.strip()


def version_of(python: Path) -> str:
    if python == Path(sys.executable):
        return "{}.{}".format(*sys.version_info[:2])
    return ask(python, "import sys; print('{}.{}'.format(*sys.version_info[:2]))")


def torchvision_for(torch_version: str) -> str:
    """The torchvision of a torch: "2.13.0+cpu" -> "0.28.*" (the two have kept step since 2.0)."""
    major, minor = torch_version.split(".")[:2]
    if major != "2":
        raise Problem(
            f"which torchvision belongs to torch {torch_version} is not known here.",
            "install torchvision into that environment, then run this again.",
        )
    return f"0.{int(minor) + 15}.*"


def has_nvidia_gpu() -> bool:
    tool = shutil.which("nvidia-smi")
    return bool(tool) and subprocess.run([tool, "-L"], capture_output=True, check=False).returncode == 0


def say(text: str) -> None:
    print(text, flush=True)
