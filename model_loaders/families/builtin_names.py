"""Which drawing a prompt of the built-in model means: it recalls drawings by their names, and combines
none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

SHORTEST = 4  # letters of a word that may be misspelt
FLAG_WORD = "flag"
SHOWN = 4  # names in a note
# Asked for alone it stays open, a mixture of all faces: the templates show with it what a seed changes.
OPEN = frozenset({"face"})
ALIASES = Path(__file__).with_name("builtin_aliases.txt")


@dataclass(frozen=True)
class Names:
    """`all` names of drawings as words with spaces, `others` by which they are known too."""

    all: Sequence[str] = ()
    others: Sequence[str] = ()

    @cached_property
    def _own(self) -> Mapping[frozenset[str], str]:
        # What a drawing is called first wins over what another one is called too.
        return {frozenset(name.split()): name for name in (*self.others, *self.all)}

    @cached_property
    def _known(self) -> Mapping[frozenset[str], str]:
        """Names by their words, and by the words of what people say in their place."""
        mine = set(self.all)
        ways = {frozenset(way.split()): name for name, way in _aliases() if name in mine}
        return ways | self._own

    @cached_property
    def words(self) -> frozenset[str]:
        """All words that some name may be asked for by."""
        return frozenset().union(*self._known)

    def has(self, words: Iterable[str]) -> bool:
        """Whether just these words ask for a drawing, a flag by its country too."""
        said = frozenset(words)
        return said in self._known or said | {FLAG_WORD} in self._known

    def choose(self, words: Sequence[str]) -> Choice:
        """The name that these words mean."""
        said = frozenset(words)
        if not said or not self.all:
            return Choice(tuple(words))
        if said in self._own:
            return Choice(tuple(self._own[said].split()))
        for exact in (said, said | {FLAG_WORD}):
            if exact in self._known:
                return self._read_as(self._known[exact])
        within = [its for its in self._known if its < said]
        if within:
            # The longest; of several one that a drawing is called, spoken of first.
            best = max(within, key=lambda its: (len(its), its in self._own, -min(map(words.index, its))))
            left = [word for word in dict.fromkeys(words) if word not in best]
            name = self._known[best]
            return Choice(tuple(name.split()), f"one drawing a picture: {name}, without {', '.join(left)}")
        around = self._listed(lambda its: its > said)
        if around and not said <= OPEN:
            also = f"; also: {', '.join(around[1:SHOWN])}" if around[1:] else ""
            return self._read_as(around[0], also)
        # No name has all these words: those with the last one, which in English says what the thing is.
        kin = around or self._listed(lambda its: words[-1] in its)
        of = f"; there are: {', '.join(kin[:SHOWN])}" if kin else ""
        return Choice(tuple(words), f"no drawing is called {' '.join(words)}{of}")

    def _listed(self, fits: Callable[[frozenset[str]], bool]) -> list[str]:
        """Names whose words are such, those of fewest words first."""
        return sorted((name for its, name in self._own.items() if fits(its)), key=_words_then_letters)

    def _read_as(self, name: str, also: str = "") -> Choice:
        return Choice(tuple(name.split()), f"read as {name}{also}")


@cache
def _aliases() -> tuple[tuple[str, str], ...]:
    """(name, another way to ask for it)"""
    lines = [line for line in ALIASES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    named = (line.split(": ") for line in lines)
    return tuple((name, way) for name, ways in named for way in ways.split(", "))


@dataclass(frozen=True)
class Choice:
    """Words to draw, and what a person should know about the choice."""

    words: tuple[str, ...]
    note: str = ""


def _words_then_letters(name: str) -> tuple[int, str]:
    return name.count(" "), name


def one_slip_away(word: str, words: Iterable[str]) -> Iterator[str]:
    """The words that differ by one slip: a letter too many, too few or wrong, or two exchanged."""
    if len(word) >= SHORTEST:
        yield from (one for one in words if len(one) >= SHORTEST and _one_slip(word, one))


def _one_slip(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1 or b.startswith("<"):
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
