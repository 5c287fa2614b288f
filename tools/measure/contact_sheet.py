"""The README's picture: the same prompts and seed step by step and by the same-picture decoder, with their
passes.

python tools/measure/contact_sheet.py [--seed 6] [--out docs/pictures/same_picture.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from common import ROOT, builtin_model, builtin_tokenizer
from jacobi_ar.decoding import (
    SamplingSettings,
    autoregressive,
    decode,
    image_seeds,
    run_to_end,
    same_picture,
)
from jacobi_ar.tools.labelled_rows import labelled_rows
from PIL import Image

PICTURED = ["red heart", "octopus", "parrot", "flag: japan", "castle", "hamburger", "fox", "butterfly"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures" / "same_picture.png")
    options = parser.parse_args()

    model, tokenizer = builtin_model(), builtin_tokenizer()
    prompts = [model.encode_prompt(text) for text in PICTURED]
    seeds = image_seeds(options.seed, len(prompts))
    made, rows = [], []
    for decoder in (autoregressive(), same_picture()):
        target = model.target(model.grids[0], model.defaults.guidance)
        with torch.inference_mode():
            result = run_to_end(decode(target, prompts, decoder, SamplingSettings(), seeds))
        made.append(result.tokens)
        passes = sorted(result.trace.passes_of)
        used = f"{passes[0]}" if passes[0] == passes[-1] else f"{passes[0]} to {passes[-1]}"
        pictures = (tokenizer.decode(result.tokens) * 255).round().byte().numpy()
        rows.append((f"{decoder.name}: {used} passes a picture", list(map(Image.fromarray, pictures))))
    if not torch.equal(*made):
        raise SystemExit("the two rows differ: choose another seed, or say so in the README")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    labelled_rows(rows).save(options.out, optimize=True)
    print(options.out)


if __name__ == "__main__":
    main()
