"""The product of a few rows takes another way, and gives the same."""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.model_loaders.linear import linear
from torch import nn


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("widths", [(24, 40), (40, 24)])
@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (4,), (5,), (2, 1), (1, 2), (2, 2), (2, 8)])
def test_equals_the_layer(shape: tuple[int, ...], widths: tuple[int, int], dtype: torch.dtype) -> None:
    layer = nn.Linear(*widths, bias=False, dtype=dtype).requires_grad_(False)
    x = torch.randn(*shape, widths[0], dtype=dtype)
    got = linear(layer, x)
    assert got.is_contiguous()
    torch.testing.assert_close(got, layer(x))
