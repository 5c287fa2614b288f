"""The commands: what they take, the environment they need, and what they then do.

A command runs twice: first in whatever Python started it, which only makes the environment; then, from the
top, in that environment, with everything installed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from .comfy_server import PACKAGE_FOLDER, ROOT, ComfyServer, announce, empty_base
from .comfy_source import fetch_comfyui, find_comfyui, lists_torchaudio, own_python_of, requirements_of
from .demo import DECODERS, make_picture
from .environment import Environment, Wishes, say
from .problem import Problem

PREPARED = "JACOBI_AR_PREPARED"  # set for the second run: the ComfyUI to use
DEV_FOLDER = "JACOBI_AR_DEV_DIR"
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="dev.py", description="Development commands of ComfyUI-JacobiAR.")
    shared = argparse.ArgumentParser(add_help=False)
    group = shared.add_argument_group("environment (made in .dev/ by default, once)")
    group.add_argument("--comfyui", type=Path, metavar="PATH", help="an existing ComfyUI folder to run in")
    group.add_argument(
        "--python", metavar="PATH", help="a Python that has torch; nothing is installed into it"
    )
    group.add_argument(
        "--torch-index", metavar="URL", help="package index to take torch from, e.g. one of CPU builds"
    )
    commands = top.add_subparsers(dest="command", required=True)

    demo = commands.add_parser("demo", parents=[shared], help="make one picture with the built-in model")
    demo.add_argument(
        "--prompt",
        help="an emoji's English name, flag and a country, or \"\" (default: the workflow's own prompt)",
    )
    demo.add_argument(
        "--decoder",
        default=next(iter(DECODERS)),
        choices=DECODERS,
        help="how tokens are decoded; autoregressive is step by step (default: %(default)s)",
    )
    demo.add_argument("--seed", type=seed, help="0 to 2^64 - 1 (default: the workflow's own seed)")
    demo.add_argument("--out", type=Path, metavar="FILE", help="where the PNG goes (default: .dev/pictures/)")

    test = commands.add_parser(
        "test", parents=[shared], help="run every test", description="Further arguments go to pytest."
    )
    test.set_defaults(arguments=[])

    serve = commands.add_parser(
        "serve", parents=[shared], help="ComfyUI in the browser, with this package in it"
    )
    serve.add_argument("--port", type=port, help="port to listen on (default: a free one)")

    pages = commands.add_parser(
        "pages", parents=[shared], help="write what the nodes say of themselves into help pages and locales"
    )
    pages.add_argument(
        "--pictures", action="store_true", help="take the pictures of the nodes anew too (needs Chromium)"
    )
    commands.add_parser(
        "cards",
        parents=[shared],
        help="make the templates' cards and the README's pictures of the nodes anew (needs Chromium)",
    )
    return top


def seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 2^64 - 1")
    return value


def port(text: str) -> int:
    value = int(text)
    if not 0 < value < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 65535")
    return value


def run(arguments: list[str]) -> int:
    """The exit code of a command line."""
    top = parser()
    wanted, rest = top.parse_known_args(arguments)
    if rest and wanted.command != "test":
        top.error(f"unknown arguments: {' '.join(rest)}")
    wanted.arguments = [argument for argument in rest if argument != "--"]
    # A plain `kill` ends the command as Ctrl-C does, so that the ComfyUI it started goes with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    try:
        if PREPARED not in os.environ:
            return prepare_and_rerun(wanted, arguments)
        commands = {
            "demo": run_demo,
            "test": run_tests,
            "serve": run_serve,
            "pages": run_pages,
            "cards": run_cards,
        }
        return commands[wanted.command](wanted)
    except Problem as problem:
        print(f"\n{wanted.command} failed: {problem}", file=sys.stderr, flush=True)
        return 1
    except OSError as error:
        advice = "see that the file or the address it names is there and may be used."
        print(f"\n{wanted.command} failed: {Problem(str(error), advice)}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr, flush=True)
        return INTERRUPTED


def dev_folder() -> Path:
    return Path(os.environ.get(DEV_FOLDER) or ROOT / ".dev").absolute()


def prepare_and_rerun(wanted: argparse.Namespace, arguments: list[str]) -> int:
    named = wanted.comfyui.absolute() if wanted.comfyui else None
    comfyui = find_comfyui(dev_folder(), named)
    wishes = Wishes(dev_folder(), base_python(wanted.python, named), wanted.torch_index)
    environment = Environment(wishes)
    try:
        tests = wanted.command in ("test", "cards") or (wanted.command == "pages" and wanted.pictures)
        torchaudio = named is not None and lists_torchaudio(comfyui)  # 0.3.75 boots without
        environment.prepare(requirements_of(comfyui, named is not None), tests, torchaudio)
        if named is None:
            fetch_comfyui(environment, comfyui)
    except OSError as error:
        raise Problem(
            f"the environment in {dev_folder()} could not be written: {error}",
            f"check the free space and the rights of that folder, or set {DEV_FOLDER} to another one.",
        ) from error
    child = subprocess.Popen(
        [str(environment.python), str(ROOT / "tools" / "dev.py"), *arguments],
        env={**os.environ, PREPARED: str(comfyui)},
    )
    return wait_for(child)


def wait_for(child: subprocess.Popen[Any]) -> int:
    """A terminal's Ctrl-C reaches the child too, which tidies up; one sent only here is passed on."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            try:
                return child.wait(5)
            except subprocess.TimeoutExpired:
                child.terminate()
        except SystemExit:
            child.terminate()


def base_python(named: str | None, comfyui: Path | None) -> Path | None:
    if named is not None:
        path = Path(named).absolute()
        if not path.is_file():
            raise Problem(f"there is no Python at {path}.", "give --python the path of a Python program.")
        return path
    return own_python_of(comfyui) if comfyui is not None else None


def run_demo(wanted: argparse.Namespace) -> int:
    with ComfyServer(Path(os.environ[PREPARED]), dev_folder()) as server:
        announce(server)
        server.check_package()
        pictures = dev_folder() / "pictures"
        make_picture(server.url, pictures, wanted.prompt, wanted.decoder, wanted.seed, wanted.out)
    return 0


def run_serve(wanted: argparse.Namespace) -> int:
    with ComfyServer(Path(os.environ[PREPARED]), dev_folder(), port=wanted.port) as server:
        announce(server)
        server.check_package()
        say(f"open  {server.url}/?template=quickstart&source={PACKAGE_FOLDER}  (Ctrl-C ends it)")
        assert server.process is not None
        code = server.process.wait()
        raise Problem(f"ComfyUI ended by itself (exit code {code}).", f"see {server.log}.")


def run_pages(wanted: argparse.Namespace) -> int:
    from . import client
    from .help_pages import ours, write_pages

    folder = dev_folder() / "pages"
    empty_base(folder)  # names of a person's files are no part of a page
    with ComfyServer(Path(os.environ[PREPARED]), folder, threads=1) as server:
        server.check_package()
        classes = client.get(server.url, "/object_info")
        faults = write_pages(classes)
        if wanted.pictures:
            from .help_pictures import take_pictures

            alone = take_pictures(server.url, classes)
            say(f"pictured without a run, because no workflow has them: {', '.join(alone) or 'none'}")
    say(f"pages and locales of {len(ours(classes))} nodes are written")
    for fault in faults:
        say(f"  still to do: {fault}")
    return 1 if faults else 0


def run_cards(wanted: argparse.Namespace) -> int:
    from .example_tokens import make_example
    from .readme_picture import take_readme_picture
    from .template_cards import make_cards

    folder = dev_folder() / "cards"
    empty_base(folder)
    with ComfyServer(Path(os.environ[PREPARED]), folder, threads=1) as server:
        server.check_package()
        make_example(server.url, server.base / "output")
        make_cards(server.url)
        take_readme_picture(server.url)
    return 0


def run_tests(wanted: argparse.Namespace) -> int:
    from .browser import find_chromium, how_to_get_chromium

    if find_chromium() is None:
        say(f"no Chromium was found, so the browser tests are skipped. {how_to_get_chromium()}")
    # The style check belongs to the whole suite; with arguments somebody is after certain tests.
    checks = [["pytest", *wanted.arguments]] if wanted.arguments else [["ruff", "check", "."], ["pytest"]]
    codes = [wait_for(subprocess.Popen([sys.executable, "-m", *check], cwd=ROOT)) for check in checks]
    return next((code for code in codes if code), 0)
