"""Emu3's text tokenizer: the original files emu3.tiktoken and emu3_vision_tokens.txt, or a tokenizer.json.

The original repository has no tokenizer.json; its files are turned into the content of one. The
tokenizer.json that was published with Hugging Face's version divides some texts otherwise (digits,
contractions in capitals).
"""

from __future__ import annotations

import base64
import binascii
import json

from ..checkpoint import Checkpoint
from ..errors import CheckpointError
from ..text_tokenizer import TextTokenizer, find_text_tokenizer

RANKS, VISION = "emu3.tiktoken", "emu3_vision_tokens.txt"
FIRST_SPECIAL = 151643  # fixed, whatever the number of ranks
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205)))
# Qwen's division of a text into words: contractions, words with one sign before them, single digits, signs,
# line ends, white space.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def emu3_tokenizer(checkpoint: Checkpoint, rows: int, source: str) -> TextTokenizer:
    """`rows` is the size of the model's table of embeddings, `source` says where the files are published."""
    ranks, vision = checkpoint.text(RANKS), checkpoint.text(VISION)
    if ranks is None:
        return find_text_tokenizer(checkpoint, ["tokenizer.json"], rows, source)
    if vision is None:
        raise CheckpointError(
            f"the text tokenizer of {checkpoint.path.name} is incomplete: there is {RANKS}, and no {VISION} "
            f"beside it. {source}"
        )
    description = f"{RANKS} of {checkpoint.path.name}"
    return TextTokenizer(tokenizer_json(ranks, vision, description), rows, description)


def tokenizer_json(ranks: str, vision: str, description: str) -> str:
    """The two original files as the content of a tokenizer.json that gives the same ids."""
    tokens = _read_ranks(ranks, description)
    letters = _letters()
    spelled = {token: "".join(letters[byte] for byte in token) for token in tokens}
    special = (*SPECIAL, *(line.strip() for line in vision.splitlines() if line.strip()))
    numbers = {name: FIRST_SPECIAL + i for i, name in enumerate(special)}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    divide = {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False}
    as_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    model = {
        "type": "BPE",
        "vocab": {spelled[token]: rank for token, rank in tokens.items()} | numbers,
        "merges": [f"{spelled[a]} {spelled[b]}" for a, b in _merges(tokens)],
        "ignore_merges": True,  # a word that is a token is taken whole, as there
    }
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [{"id": number, "content": name, **added} for name, number in numbers.items()],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [divide, as_bytes]},
            "post_processor": None,
            "decoder": as_bytes,
            "model": model,
        },
        ensure_ascii=False,
    )


def _read_ranks(text: str, description: str) -> dict[bytes, int]:
    """Token -> rank, which is its id as well, from lines of a token in base 64 and its rank."""
    try:
        pairs = (line.split() for line in text.splitlines() if line)
        tokens = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except (ValueError, binascii.Error) as error:
        raise CheckpointError(f"{description} is damaged ({error})") from error
    lacking = [byte for byte in range(256) if bytes([byte]) not in tokens]
    if lacking:
        raise CheckpointError(f"{description} is damaged or cut off: no token for byte {lacking[0]}")
    return tokens


def _merges(tokens: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """All pairs that make a token, the lowest rank first.

    Files with ranks join whichever two neighbours make the token of the lowest rank, so every way to divide a
    token in two tokens is a merge, not only the one by which it was learned.
    """
    pairs = []
    for token in sorted(tokens, key=tokens.__getitem__):
        halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        pairs += [(a, b) for a, b in halves if a in tokens and b in tokens]
    return pairs


def _letters() -> list[str]:
    """The printable character that stands for each byte in byte-level vocabularies."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
