"""Note [Seeded law tests]

An exact decoder is run on a toy model whose joint law of all tokens is written out, and the counts of whole
pictures are compared with that law by Pearson's chi-square. Seeds are fixed, so a test passes always or
never; over the choice of a seed a correct decoder fails with probability 1e-4. A broken variant must fail at
1e-6, else the test has no teeth. Joint, because marginals hide a wrong draft law.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

PASSES_ABOVE = 1e-4
FAILS_BELOW = 1e-6


def chi_square_p(counts: np.ndarray, law: np.ndarray) -> float:
    """p-value of `counts` [n] under `law` [n]; outcomes expected fewer than 5 times are pooled.

    An outcome of probability 0 that occurred gives 0.
    """
    if counts[law == 0].any():
        return 0.0
    expected = counts.sum() * law
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(observed) - 1))
