"""Names of drawings as words: `face-with-tears-of-joy` is `face tears joy`; skin tones are left out."""

from __future__ import annotations

import re
from collections.abc import Collection

from ...model_loaders.families.builtin_prompt import words_in

# Words without a picture of their own: no name keeps them, and a prompt may hold them. The style words are
# among them, but for "flat" and "flag", which names have too.
FILLERS = frozenset(
    "a an the of with and in on at to for s my your some one this that is are please draw show make create "
    "generate me photo picture image drawing painting illustration photograph emoji icon style cute nice "
    "beautiful very noto twemoji".split()
)

_TONES = ("dark", "light", "medium", "medium-dark", "medium-light")


def words_of(key: str) -> tuple[str, ...]:
    """`Åland Islands` -> (aland, islands). Letters and digits, lower case, without accents and fillers."""
    found = words_in(key)
    return tuple(word for word in found if word not in FILLERS) or tuple(found)


def has_skin_tone(key: str, keys: Collection[str]) -> bool:
    """Whether `key` is one of the five skin tones of another drawing in `keys`.

    Fluent's end in `-light` and so on, as does `police-car-light`, which is no skin tone: so all five must
    be there.
    """
    if "skin-tone" in key or re.search(r"-tone\d", key):
        return True
    for tone in _TONES:
        stem = key.removesuffix(f"-{tone}")
        if stem != key and all(f"{stem}-{other}" in keys for other in _TONES):
            return True
    return False
