"""How a picture was made: what is needed to make it again alone, for files and for people."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from .package_version import package_version

PNG_KEY = "jacobi_ar"  # of the text chunk
GENERATED, ENCODED = "Generate Image Tokens", "Encode Image to Tokens"
MOST_SOURCES = 50  # pictures that one goes back to, in a file; JSON readers limit how deep they go


@dataclass(frozen=True)
class PictureFacts:
    """Of one picture. None, empty: does not apply, such as the seed of a picture that was not generated.

    With these values in Generate Image Tokens and batch_size 1 the picture comes again (up to rounding);
    where tokens were given it takes those tokens too.
    """

    made_by: str
    model: str = ""
    family: str = ""
    dtype: str = ""
    prompt: str | None = None
    seed: int | None = None
    decoder: str = ""
    promise: str = ""
    guidance: float | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    rows: int = 0
    columns: int = 0
    given: str = ""  # tokens that were not decoded, in words
    given_from: PictureFacts | None = None  # where they came from
    version: str = ""  # of this package; filled in where it is made

    def __post_init__(self) -> None:
        if not self.version:
            object.__setattr__(self, "version", package_version())

    def as_json(self, sources: int = MOST_SOURCES) -> dict[str, Any]:
        """JSON values without what does not apply, going back so many `sources`. The seed is a string: 64
        bits are too many for a JavaScript number."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {name: value for name, value in found.items() if value not in (None, "")}
        if self.seed is not None:
            found["seed"] = str(self.seed)
        if (source := found.pop("given_from", None)) and sources:
            found["given_from"] = source.as_json(sources - 1)
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> PictureFacts:
        """ValueError, KeyError or TypeError for what `as_json` does not make; unknown names are left out, so
        that newer files can be read."""
        known = {field.name: field.type for field in fields(cls)}
        values = {name: value for name, value in found.items() if name in known}
        for name, value in values.items():
            if "str" in known[name]:
                if not isinstance(value, str):
                    raise TypeError(f"{name} is no text")
                value.encode()  # an escaped half of a character can be read, and written nowhere
        if "seed" in values:
            values["seed"] = int(values["seed"])
        if "given_from" in values:
            values["given_from"] = cls.from_json(values["given_from"])
        return cls(**values)

    def text(self) -> str:
        """For a PNG or a file header."""
        return json.dumps(self.as_json())
