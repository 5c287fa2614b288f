"""Which image tokenizer tokens belong to. A token is a number; what it looks like is the codebook's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

PROJECTIONS, BITS = 4, 16
STEP = 2.0**-14  # of a projection, whose spread is about 1
KEY = 0x6A61636F6269  # of the signs; files depend on it
TOLERANCE = 8  # steps; rounding moves a projection by less than one


@dataclass(frozen=True)
class TokenizerIdentity:
    """Kind, size and fingerprint of a codebook; saved with tokens, and compared before they are decoded."""

    kind: str
    vocabulary: int
    codebook: str  # see `fingerprint`

    def matches(self, other: TokenizerIdentity) -> bool:
        return (self.kind, self.vocabulary) == (other.kind, other.vocabulary) and near(
            self.codebook, other.codebook
        )

    def describe(self) -> str:
        return f"{self.kind}, {self.vocabulary} codes, codebook {self.codebook}"


def fingerprint(codebook: Tensor) -> str:
    """Codebook [V, c] -> 16 hexadecimal digits, to be compared by `near`.

    No hash of the bytes: most codebooks are normalised while loading, and the last bit of that differs from
    one processor to another. So it is four sums of all values under fixed random signs, in 16 bits each.
    """
    values = codebook.double().numpy().ravel()
    values = values / max(float(np.linalg.norm(values)), 1e-30)
    bits = np.random.Philox(key=KEY).random_raw(len(values))
    numbers = []
    for projection in range(PROJECTIONS):
        signs = ((bits >> np.uint64(projection)) & np.uint64(1)).astype(np.float64) * 2 - 1
        numbers.append(round(float(signs @ values) / STEP) % 2**BITS)
    return "".join(f"{number:04x}" for number in numbers)


def near(one: str, other: str) -> bool:
    """Whether two fingerprints are of one codebook, give or take rounding."""
    if not len(one) == len(other) == PROJECTIONS * BITS // 4:
        return False
    try:
        pairs = [(int(one[i : i + 4], 16), int(other[i : i + 4], 16)) for i in range(0, len(one), 4)]
    except ValueError:
        return False
    distances = ((a - b) % 2**BITS for a, b in pairs)
    return all(min(distance, 2**BITS - distance) <= TOLERANCE for distance in distances)
