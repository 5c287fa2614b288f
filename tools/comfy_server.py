"""A ComfyUI of our own on a loopback port, with this package in it; gone when the command ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from .environment import say
from .problem import Problem, last_lines

ROOT = Path(__file__).resolve().parents[1]
PACKAGE_FOLDER = "ComfyUI-JacobiAR"
BOOT_SECONDS = 180
# A line of ComfyUI's log. Its path must end in the folder: ComfyUI may lie in a clone of the same name.
IMPORT_FAILED = re.compile(
    rf"(Cannot import|\(IMPORT FAILED\):) .*[/\\]{PACKAGE_FOLDER}( module for custom nodes|$)"
)


class ComfyServer:
    """`with ComfyServer(comfyui, dev_folder) as server:` boots it, and stops it at the end."""

    def __init__(
        self,
        comfyui: Path,
        dev_folder: Path,
        *,
        name: str = "comfyui",
        port: int | None = None,
        preview_method: str = "auto",
        cpu: bool | None = None,
        python: Path | None = None,
        threads: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.comfyui = comfyui
        self.base = dev_folder / "base"
        self.log = dev_folder / "logs" / f"{name}.log"
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.preview_method = preview_method
        self.python = python or Path(sys.executable)
        self.cpu = not torch_has_gpu() if cpu is None else cpu
        self.threads = threads  # of torch on the CPU; None leaves it to torch
        self.options = options  # more of ComfyUI's own
        self.process: subprocess.Popen[bytes] | None = None
        self.boot_seconds = 0.0

    def command(self) -> list[str]:
        return [
            str(self.python), "main.py",
            "--listen", "127.0.0.1", "--port", str(self.port),
            "--base-directory", str(self.base), "--database-url", "sqlite:///:memory:",
            "--disable-api-nodes", "--disable-all-custom-nodes", "--whitelist-custom-nodes", PACKAGE_FOLDER,
            "--preview-method", self.preview_method,
            *(["--cpu"] if self.cpu else []),
            *self.options,
        ]  # fmt: skip

    def __enter__(self) -> ComfyServer:
        check_port(self.port)
        prepare_base(self.base)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
        if self.threads is not None:
            environment["OMP_NUM_THREADS"] = str(self.threads)
        # A process group of its own, so that everything it starts can be ended with it.
        if os.name == "nt":
            group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        else:
            group = {"start_new_session": True}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.comfyui,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **group,
            )
        try:
            self.wait_until_ready(start)
        except BaseException:
            self.stop()
            raise
        self.boot_seconds = time.monotonic() - start
        return self

    def wait_until_ready(self, start: float) -> None:
        assert self.process is not None
        while time.monotonic() - start < BOOT_SECONDS:
            code = self.process.poll()
            if code is not None:
                raise Problem(
                    f"ComfyUI stopped while it started (exit code {code}). The end of {self.log}:\n"
                    f"{last_lines(self.log)}",
                    boot_advice(self.log),
                )
            try:
                with urllib.request.urlopen(f"{self.url}/system_stats", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise Problem(
            f"ComfyUI did not answer within {BOOT_SECONDS} s. The end of {self.log}:\n{last_lines(self.log)}",
            "run this again; on a very slow disk the first start can take long.",
        )

    def check_package(self) -> None:
        """The package is in it. ComfyUI only writes a warning when a package fails to load."""
        failure = import_failure(self.log.read_text(encoding="utf-8", errors="replace"))
        if failure:
            raise Problem(
                f"ComfyUI could not load this package. From {self.log}:\n{failure}",
                "a change in the package broke its import: the lines above name the file.",
            )

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        with undisturbed():
            self.end_process(self.process)

    def end_process(self, process: subprocess.Popen[bytes]) -> None:
        if os.name == "nt":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False
            )
        else:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            if os.name != "nt":
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def undisturbed() -> Iterator[None]:
    """An impatient second Ctrl-C waits until the block is done: it would leave the server behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check_port(port: int) -> None:
    """Nobody listens there. Otherwise that program would answer in place of the new ComfyUI."""
    with socket.socket() as probe:
        if os.name != "nt":  # a port that was in use a moment ago counts as free, as it does for ComfyUI
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Problem(
                f"port {port} cannot be used: {error.strerror or error}.",
                "name another port, or leave --port out and a free one is found.",
            ) from error


def torch_has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() or torch.backends.mps.is_available()


def prepare_base(base: Path) -> None:
    """The folder that ComfyUI keeps its files in, with this repository among its custom nodes."""
    for name in ("models", "custom_nodes", "input", "output", "user/default"):
        (base / name).mkdir(parents=True, exist_ok=True)
    link_package(base / "custom_nodes" / PACKAGE_FOLDER)
    settings = base / "user" / "default" / "comfy.settings.json"
    if not settings.exists():
        # Otherwise the page opens on a gallery of templates that lies over everything.
        settings.write_text(json.dumps({"Comfy.TutorialCompleted": True}), encoding="utf-8")


def empty_base(dev_folder: Path) -> None:
    """Takes out what earlier runs left there: pictures, inputs, models. Their names are options of some
    nodes."""
    for left in ("output", "input", "models", "temp"):
        shutil.rmtree(dev_folder / "base" / left, ignore_errors=True)


def link_package(link: Path) -> None:
    if link.exists() and link.resolve() == ROOT:
        return
    if link.is_symlink():
        link.unlink()  # the checkout was moved
    try:
        if os.name == "nt":
            import _winapi  # a junction needs no administrator, a symbolic link does

            if os.path.lexists(link):
                link.rmdir()
            _winapi.CreateJunction(str(ROOT), str(link))
        else:
            link.symlink_to(ROOT, target_is_directory=True)
    except OSError as error:
        raise Problem(
            f"the package could not be linked into ComfyUI's custom nodes at {link}: {error}",
            "delete what lies there; on a disk without links set JACOBI_AR_DEV_DIR to a folder elsewhere.",
        ) from error


def boot_advice(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    # Optional nodes that lack a package say so too, further up, and do not stop ComfyUI.
    if "No module named" in last_lines(log, 1):
        return "a package is missing: install what the last line names, or leave --python and --comfyui out."
    if "ddress already in use" in text or "10048" in text:
        return "another program took the port meanwhile: run this again."
    if "not compiled with CUDA" in text:
        return "this torch has no GPU support: run this again, or name an environment with --python."
    return "the lines above say why; a damaged environment is made anew if you delete the development folder."


def import_failure(log: str) -> str:
    """The lines of ComfyUI's log that tell why this package was not loaded; empty if it was.

    Failures of ComfyUI's own optional nodes stand in the same log and do not matter.
    """
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if IMPORT_FAILED.search(line):
            return "\n".join(f"  | {text}" for text in lines[max(0, number - 12) : number + 1])
    return ""


def announce(server: ComfyServer) -> None:
    device = "CPU" if server.cpu else "GPU"
    say(f"ComfyUI started in {server.boot_seconds:.1f} s on the {device}, log: {server.log}")
