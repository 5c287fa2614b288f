"""Which tensors are pictures that can be saved."""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.nodes.pictures import check_pictures
from torch import Tensor


@pytest.mark.parametrize("channels", [3, 4])
def test_pictures_pass(channels: int) -> None:
    check_pictures(torch.rand(2, 5, 4, channels), 2)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (torch.rand(3, 4, 5, 3), "3 pictures and tokens hold 2"),
        (torch.rand(2, 4, 5, 1), "must be"),
        (torch.rand(2, 4, 5, 2), "must be"),
        (torch.rand(2, 4, 5), "must be"),
        (torch.rand(2, 0, 5, 3), "must be"),
        (torch.full((2, 4, 5, 3), torch.nan), "not numbers"),
    ],
)
def test_others_are_refused(image: Tensor, said: str) -> None:
    with pytest.raises(ValueError, match=f"^image .*{said}"):
        check_pictures(image, 2)
