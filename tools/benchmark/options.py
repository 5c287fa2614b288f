"""The options of tools/bench.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..measure.common import ROOT
from .catalogue import ABLATIONS
from .subject import BUILTIN, DTYPES

STORE = ROOT / ".dev" / "bench"
# What says the model: option, type, default, help.
_MODEL = (
    ("model", str, BUILTIN, f"weight file or folder (default: {BUILTIN})"),
    ("tokenizer", str, None, "its image tokenizer (VQ); closeness, GSD and LANTERN need it"),
    ("text-encoder", str, None, "text encoder, for models that want one"),
    ("dtype", str, "float32", ", ".join(DTYPES)),
    ("device", str, "cpu", "cpu, cuda, cuda:1, …"),
    ("threads", int, None, "CPU threads (default: torch's choice)"),
    ("temperature", float, None, "default: the model's own, as of the next two"),
    ("top-k", int, None, "0 is off"),
    ("top-p", float, None, "1 is off"),
)


def read_options(arguments: Sequence[str], description: str | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bench.py", description=description, formatter_class=form)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (
        ("time", "passes, seconds, memory, one picture at a time"),
        ("closeness", "pictures against step-by-step decoding's"),
        ("table", "Markdown and plots of what is measured"),
        ("memory-of", argparse.SUPPRESS),
    ):
        command = commands.add_parser(name, help=help_, description=help_)
        _add_model(command)
        command.add_argument("--decoders", nargs="+", metavar="SPEC", help="default: those of the main table")
        command.add_argument("--conditions", nargs="+", metavar="KIND@GUIDANCE", help="prompts@2, none@1, …")
        command.add_argument("--pictures", type=int, help="a decoder and condition")
        command.add_argument("--batch", type=int, default=32, help="pictures decoded at once, for closeness")
        command.add_argument("--out", type=Path, default=STORE, help="folder of what is measured")
        command.add_argument(
            "--drawings",
            type=Path,
            help="folder `drawings` in the --home of builtin_model/make.py data, for the recall of names",
        )
        command.add_argument(
            "--ablate", nargs="*", choices=list(ABLATIONS), help="the varied settings (all, or those named)"
        )
        command.add_argument("--no-memory", action="store_true", help="time: without peak memory")
        command.add_argument("--write", action="store_true", help="table: into README.md and docs/")
    return parser.parse_args(arguments)


def _add_model(command: argparse.ArgumentParser) -> None:
    for name, kind, default, help_ in _MODEL:
        command.add_argument(f"--{name}", type=kind, default=default, help=help_)
    command.add_argument(
        "--grid", type=int, nargs=2, metavar=("ROWS", "COLS"), help="default: the model's first"
    )
    command.add_argument("--prompt", action="append", metavar="TEXT", help="again for each prompt")
    command.add_argument("--prompts", type=Path, metavar="FILE", help="one prompt a line")


def model_arguments(options: argparse.Namespace) -> list[str]:
    """The arguments that load the same model in another process."""
    given = [
        (f"--{name}", str(value))
        for name, *_ in _MODEL
        if (value := getattr(options, name.replace("-", "_"))) is not None
    ]
    if options.prompts is not None:
        given.append(("--prompts", str(options.prompts)))
    given += [("--prompt", text) for text in options.prompt or []]
    grid = [] if options.grid is None else ["--grid", *map(str, options.grid)]
    return [*(word for pair in given for word in pair), *grid]
