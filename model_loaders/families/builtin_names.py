"""Which drawing a prompt of the built-in model means: it recalls drawings by their names, and combines
none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

SHORTEST = 5  # letters of a word that may be misspelt
FLAG_WORD = "flag"
SHOWN = 4  # names in a note


@dataclass(frozen=True)
class Names:
    """`all` names of drawings as words with spaces, `others` by which they are known too."""

    all: Sequence[str] = ()
    others: Sequence[str] = ()

    @cached_property
    def _by_words(self) -> Mapping[frozenset[str], str]:
        # What a drawing is called first wins over what another one is called too.
        return {frozenset(name.split()): name for name in (*self.others, *self.all)}

    def lacks(self, words: Sequence[str]) -> bool:
        """Whether there are names, and none of just these words."""
        return bool(self.all) and frozenset(words) not in self._by_words

    def choose(self, words: Sequence[str]) -> Choice:
        """The name that these words mean."""
        said = frozenset(words)
        if not said or not self.all:
            return Choice(tuple(words))
        known = self._by_words
        if said in known:
            return Choice(tuple(known[said].split()))
        if said | {FLAG_WORD} in known:
            return self._read_as(known[said | {FLAG_WORD}])
        within = [name for its, name in known.items() if its < said]
        if within:
            # The longest; of several the one that is spoken of first.
            best = max(within, key=lambda name: (name.count(" "), -_place(name, words)))
            left = [word for word in dict.fromkeys(words) if word not in best.split()]
            return Choice(tuple(best.split()), f"one drawing a picture: {best}, without {', '.join(left)}")
        around = self._listed(lambda its: its > said)
        nearest = [name for name in around if name.count(" ") == around[0].count(" ")]
        if len(nearest) == 1:
            return self._read_as(nearest[0])
        # No name has all these words: those with the last one, which in English says what the thing is.
        kin = around or self._listed(lambda its: words[-1] in its)
        of = f"; there are: {', '.join(kin[:SHOWN])}" if kin else ""
        return Choice(tuple(words), f"no drawing is called {' '.join(words)}{of}")

    def _listed(self, fits: Callable[[frozenset[str]], bool]) -> list[str]:
        """Names whose words are such, those of fewest words first."""
        return sorted((name for its, name in self._by_words.items() if fits(its)), key=_words_then_letters)

    def _read_as(self, name: str) -> Choice:
        return Choice(tuple(name.split()), f"read as {name}")


@dataclass(frozen=True)
class Choice:
    """Words to draw, and what a person should know about the choice."""

    words: tuple[str, ...]
    note: str = ""


def _place(name: str, words: Sequence[str]) -> int:
    return min(words.index(word) for word in name.split())


def _words_then_letters(name: str) -> tuple[int, str]:
    return name.count(" "), name


def misspelt(word: str, words: Iterable[str]) -> str | None:
    """The first of the words that differs by one slip: a letter too many, too few or wrong, or two
    exchanged."""
    if len(word) < SHORTEST:
        return None
    return next((one for one in words if len(one) >= SHORTEST and _one_slip(word, one)), None)


def _one_slip(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1 or b.startswith("<"):
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
