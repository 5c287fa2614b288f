"""The model card, written from what was measured and from what the files say of themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from ..measure.common import machine
from .export import TOKENIZER, TRANSFORMER
from .selection import SECOND
from .sources import ALLOWED, SOURCES
from .tokenise import Lessons

TEMPLATE = """# The built-in model

A tiny text-to-image autoregressive model, so that the package makes a picture on any machine, with no
download: {side} x {side} pictures of emoji and flags, {grid} x {grid} tokens, from a few words. It recalls
the names that it was trained on; it does not compose, and says little to words that it does not know.

| file | what |
|---|---|
| `builtin_ar.safetensors` | transformer with denoiser, {ar_size:.2f} M parameters, float16 |
| `builtin_vq.safetensors` | image tokenizer, {vq_size:.2f} M parameters, codebook {codes} x {width} |

Blocks and names are LlamaGen's. The files' metadata says sizes, words and how prompts are read.

**How it differs from LlamaGen.** A prefix of {prefix} word tokens: the style, then the words of the name, 0
for padding; `<null>` alone means no prompt. Padding is visible to attention, the prefix is not rotated, the
rotary base is {rope:g}, and one text vector is added to the embedding of every input. The picture side is a
small CNN with pixel shuffle; codebook rows are L2-normalised.

**Prompts.** {styles} ask for a style; where none is asked for, all styles of a name are possible, a mixture
of them too. Recall says which drawing was meant, not how clean it is. Synonyms are read as the word that is
known; words without a picture of their own ("a photo of a …") and unknown words are left out, and said so.
Guidance compares with no prompt, and a style with the same words without one: more guidance, more of the
style.

**Training**, by `tools/builtin_model/make.py` of this repository: {names} names, {drawings} drawings, with a
random share of the input tokens replaced so that the model has to listen to the words. Machine: {machine}.

| network | written at commit | seed | steps | hours |
|---|---|---|---|---|
| image tokenizer | {vq[commit]} | {vq[seed]} | {vq[steps]} | {vq[hours]} |
| transformer | {ar[commit]} | {ar[seed]} | {ar[steps]} | {ar[hours]} |
| denoiser, for SJD2 | {noise[commit]} | {noise[seed]} | {noise[steps]} | {noise[hours]} |

**Figures**, step by step, temperature 1, guidance {guidance:g}.

| what | value |
|---|---|
{figures}

## Sources and licences

The weights carry the licence of this package. They were trained on drawings from these npm packages, which
are not in it; the drawings were rasterised to {side} x {side} pixels on white; the image tokenizer also
learnt from moved and mirrored copies.

| package | drawings by | licence |
|---|---|---|
{sources}
"""


NAMES_PAGE = """# What the built-in model draws

{count} names, one drawing a picture; written by `tools/builtin_model/make.py install`. The {several} names in
italics come in several styles: {styles} in front of one ask for a style, mostly with success, more so with
more guidance. Other words are read as a name where that is possible, and the node says how.

![A hundred of them, drawn step by step](pictures/builtin.jpg)

## Flags

*flag* and: {flags}

## Everything else

{others}
"""


def names_page(lessons: Lessons) -> str:
    """All names that can be asked for, as a page of the documentation."""
    several = {one.name for one in lessons.about if one.style in SECOND}
    flags = [name.removeprefix("flag ") for name in lessons.names if name.startswith("flag ")]
    others = [name for name in lessons.names if not name.startswith("flag ")]
    return NAMES_PAGE.format(
        count=len(lessons.names),
        several=len(several),
        styles=", ".join(f"*{source.style}*" for source in SOURCES if source.style != "flag"),
        flags=", ".join(flags) + ".",
        others=", ".join(f"*{name}*" if name in several else name for name in others) + ".",
    )


def card(folder: Path, figures: Mapping[str, Any], side: int) -> str:
    """The text, from the two files in `folder` and the figures of `report`."""
    transformer, tokenizer = folder / TRANSFORMER, folder / TOKENIZER
    ar, vq = _said(transformer), _said(tokenizer)
    config = ar["config"]
    with safe_open(tokenizer, "pt") as file:
        codebook = file.get_slice("codebook").get_shape()
    return TEMPLATE.format(
        side=side,
        grid=config["grid"],
        prefix=config["prefix"],
        rope=config["rope_base"],
        ar_size=_millions(transformer),
        vq_size=_millions(tokenizer),
        codes=codebook[0],
        width=codebook[1],
        styles=", ".join(f'"{source.style}"' for source in SOURCES if source.style != "flag"),
        names=figures["names"],
        machine=machine(),
        drawings=figures["drawings"],
        guidance=figures["guidance"],
        ar=ar["made"],
        vq=vq["made"],
        noise=ar["denoising"]["made"],
        figures="\n".join(_rows(figures)),
        sources="\n".join(
            f"| `{s.package}` {s.version} ({s.drawings}) | {s.author} | [{s.licence}]({ALLOWED[s.licence]}) |"
            for s in SOURCES
        ),
    )


def _said(path: Path) -> dict[str, Any]:
    """What a file says of itself."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    return {key: json.loads(metadata[key]) for key in ("made", "config", "denoising") if key in metadata}


def _millions(path: Path) -> float:
    """Parameters of a file."""
    with safe_open(path, "pt") as file:
        return sum(math.prod(file.get_slice(key).get_shape()) for key in file.keys()) / 1e6


def _rows(figures: Mapping[str, Any]) -> list[str]:
    asked = f"{figures['names asked']} names, {figures['seeds']} seeds each"
    rows = [("recall: nearest drawing is the name's own", f"{figures['recall']:.3f} ({asked})")]
    if "recall of a style" in figures:
        rows.append(
            ("recall where a style is asked for: its very drawing", f"{figures['recall of a style']:.3f}")
        )
    rows.append(("recall if every token were known", f"{figures['recall, tokens known']:.3f}"))
    for key, value in figures.items():
        if key.startswith("held-out dB"):
            rows.append(
                (
                    f"PSNR of drawings never seen by the tokenizer{key.removeprefix('held-out dB')}",
                    f"{value:.1f} dB",
                )
            )
    rows.append(("both files", f"{figures['megabytes']:.1f} MB"))
    for key in ("with prompts", "without a prompt"):
        laws = figures[key]
        text = f"{laws['entropy']:.2f} bits, {laws['peaked']:.1%} of tokens above 0.9"
        rows.append((f"mean entropy of the laws, sampled, {key}", text))
    return [f"| {name} | {value} |" for name, value in rows]
