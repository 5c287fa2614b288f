"""Convert an AR image model to one .safetensors file that loads alone:

python tools/convert.py SOURCE TARGET [--dtype bf16|fp8] [--tokenizer FILE] [--overwrite]

Needs torch, safetensors and tokenizers: run it with ComfyUI's Python, or with the one that tools/dev.py makes
in .dev/venv. SOURCE is a weight file or a folder.
The image tokenizer (VQ) that is put into the file is the one in SOURCE, or the one after
--tokenizer; one that lies beside SOURCE is not looked for.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
if "jacobi_ar" not in sys.modules:
    alias = ModuleType("jacobi_ar")
    alias.__path__ = [str(ROOT)]
    sys.modules["jacobi_ar"] = alias

from jacobi_ar.tools.needs import lack  # noqa: E402

if TYPE_CHECKING:
    from jacobi_ar.model_loaders.convert import Conversion


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="weight file, or folder with weights")
    parser.add_argument("target", type=Path, help="the new file, ending in .safetensors")
    parser.add_argument("--dtype", choices=["bf16", "fp8"], default="bf16")
    parser.add_argument("--tokenizer", type=Path, help="the image tokenizer (VQ) to put into the file")
    parser.add_argument("--overwrite", action="store_true", help="replace TARGET if it is there")
    options = parser.parse_args(arguments)
    if options.target.suffix != ".safetensors":
        parser.error("TARGET must end in .safetensors")
    if lacking := lack("convert.py", "torch", "safetensors"):
        print(lacking, file=sys.stderr)
        return 1
    return convert(options)


def convert(options: argparse.Namespace) -> int:
    # Only now: --help works without torch.
    from jacobi_ar.model_loaders.companions import PICTURES, where_from
    from jacobi_ar.model_loaders.convert import plan_conversion
    from jacobi_ar.model_loaders.errors import CheckpointError, DependencyError

    try:
        vq = options.tokenizer or own_tokenizer(options.source)
        conversion = plan_conversion(options.source, vq, float8=options.dtype == "fp8")
        run(conversion, options.target, options.overwrite)
    except (CheckpointError, DependencyError, OSError) as error:
        print(f"convert.py: {error}", file=sys.stderr)
        return 1
    print(f"{options.target}: {conversion.model.name}, {'with' if vq else 'without'} an image tokenizer")
    if vq is None:
        source = where_from(conversion.model.family, PICTURES)
        print("Warning: there is none in SOURCE, and no picture is made without. Name it by --tokenizer.")
        print(source and f"{source}.")
    return 0


def own_tokenizer(source: Path) -> Path | None:
    from jacobi_ar.model_loaders.errors import CheckpointError
    from jacobi_ar.model_loaders.load_tokenizer import load_image_tokenizer

    try:
        load_image_tokenizer(source, device="meta")
    except CheckpointError:
        return None
    return source


def run(conversion: Conversion, target: Path, overwrite: bool) -> None:
    """Ctrl-C leaves nothing behind."""
    from jacobi_ar.model_loaders.convert import write

    with closing(write(conversion, target, overwrite=overwrite)) as running:
        shown = -1
        for done in running:
            percent = 100 * done // conversion.bytes
            if percent > shown:
                shown = percent
                print(f"\r{percent} % of {conversion.bytes / 2**30:.2f} GiB", end="", flush=True)
    print()


if __name__ == "__main__":
    sys.exit(main())
