"""How the built-in model reads a prompt: style words, synonyms, words without a picture, unknown ones.

What it goes by travels with the weights, as `prompts` in their metadata: `styles` (word -> special word),
`any` (the special word where no style is asked for), `fillers`, `synonyms` (word -> word of a name), `names`
and `other names` of the drawings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .builtin_names import FLAG_WORD, Names, one_slip_away

PAD, NULL, FLAG = "<pad>", "<null>", "<flag>"
MOST_UNKNOWN = 50  # words that are looked at for slips
EMPTY = "empty prompt: the picture is left to the model, and guidance has no effect"
NOT_ENGLISH = "nothing of this text can be read: the built-in model knows English words in Latin letters"


@dataclass(frozen=True)
class Manner:
    """What is known about prompts."""

    any: str
    styles: Mapping[str, str]
    fillers: frozenset[str]
    synonyms: Mapping[str, str]
    names: Names

    def guided_away_from(self, said: Sequence[str]) -> list[str]:
        """What guidance compares these words with, the style first.

        No prompt; but where a style is asked for, the same words without one: against no prompt,
        more guidance gave less of the style (its very drawing, 900 prompts at 1.5: 63 %; so 72 %).
        """
        # Flags have one style alone, so that their names without it ask for the same picture.
        styled = said[0] in self.styles.values() and said[0] != FLAG
        return [self.any, *said[1:]] if styled and said[1:] else [NULL]


@dataclass(frozen=True)
class Reading:
    """Words of the vocabulary, the style first, and what a person should know about them."""

    names: Sequence[str]
    notes: Sequence[str]


def read_prompt(text: str, words: Mapping[str, int], manner: Manner, most: int) -> Reading:
    """`most` words, the style among them; none but `<null>` for an empty prompt."""
    said = words_in(_emoji_as_words(text))
    if not said:
        return Reading([NULL], [EMPTY] if not text.strip() else [NOT_ENGLISH, EMPTY])
    style = manner.any
    names: list[str] = []
    unknown: list[str] = []
    left_out: list[str] = []
    read_as: list[str] = []
    notes: list[str] = []
    for place, word in enumerate(said):
        if word in manner.styles and (word not in words or place == 0):
            style = manner.styles[word]
        known = _known(word, words, manner)
        if known is not None:
            names.append(known)
            if known != word:
                read_as.append(f"{word} as {known}")
        elif word in manner.styles:
            continue
        elif word in manner.fillers:
            left_out.append(word)
        else:
            unknown.append(word)
    for word in dict.fromkeys(unknown[:MOST_UNKNOWN]):
        # Only where a drawing is called so: a guess at a word alone is more often wrong than right.
        meant = (one for one in one_slip_away(word, words) if manner.names.has([*names, one]))
        if one := next(meant, None):
            names.append(one)
            unknown = [other for other in unknown if other != word]
            read_as.append(f"{word} as {one}")
    if names[1:] and names[0] == said[0] and said[0] in manner.styles and not manner.names.has(names):
        if said[0] == FLAG_WORD:
            style = manner.any
            notes.append(f"no flag is called {' '.join(names[1:])}")
        names = names[1:]  # it asked for a style, and is no part of a name
    choice = manner.names.choose(names)
    if read_as:
        notes.append(f"read by the built-in model: {', '.join(dict.fromkeys(read_as))}")
    if choice.note:
        notes.append(choice.note)
    if left_out:
        notes.append(f"left out, without a picture of their own: {', '.join(dict.fromkeys(left_out))}")
    unknown += [word for word in choice.words if word not in words]
    if unknown:
        notes.append(f"not in the built-in vocabulary, ignored: {', '.join(dict.fromkeys(unknown))}")
    known_words = [word for word in choice.words if word in words]
    if not known_words:
        notes.append("no word of the prompt is known to the built-in model: expect an unrelated picture")
    chosen = [style, *known_words]
    kept, cut = chosen[:most], chosen[most:]
    if cut:
        notes.append(f"the built-in model reads {most - 1} words, cut off: {', '.join(cut)}")
    return Reading(kept, notes)


def _emoji_as_words(text: str) -> str:
    """Emoji by their names in Unicode: an octopus as ` octopus `."""
    return "".join(
        f" {unicodedata.name(sign, '')} " if unicodedata.category(sign) == "So" else sign for sign in text
    )


def words_in(text: str) -> list[str]:
    """Letters and digits, lower case, without accents. Names of drawings are made so too."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall(r"[a-z0-9]+", plain.replace("'", ""))


def _known(word: str, words: Mapping[str, int], manner: Manner) -> str | None:
    """The word of a name that stands for `word`: itself, a synonym, its singular or its plural."""
    if word in words or word in manner.names.words:
        return None if word.startswith("<") else word
    for form in (word, word.removesuffix("s"), word.removesuffix("es"), f"{word}s"):
        if form in manner.synonyms:
            return manner.synonyms[form]
        if form in words and not form.startswith("<") and len(form) > 1:
            return form
    return None
