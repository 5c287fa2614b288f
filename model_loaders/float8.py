"""Weights of the layers in eight bits: float8 (e4m3) with one scale a row, arithmetic in the input's type.

Half the memory of bfloat16. Only storage: a product casts its weight first, so no device needs float8
arithmetic. Scales are powers of two, which has three uses: `weight * scale` is exact in bfloat16 and float32,
scaling the product instead of the weight gives the same bits, and what is already in float8 (a file of it)
comes through unchanged. Embeddings, norms and heads keep their type.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LARGEST = 464  # rounds to 448, the largest number of e4m3
SMALLEST_SCALE = 2.0**-100  # rows of zeros, and of what no float16 holds


def to_float8(weight: Tensor) -> tuple[Tensor, Tensor]:
    """[out, in] -> float8 [out, in] and scales float32 [out]; finite numbers only.

    The scale is the smallest power of two that brings the row within the range. What comes out goes in again
    unchanged: rounding leads no row's largest number across the limit.
    """
    mantissa, exponent = torch.frexp(weight.abs().amax(1).float())
    scale = torch.ldexp(torch.ones_like(mantissa), exponent - torch.where(mantissa > LARGEST / 512, 8, 9))
    scale = scale.clamp(min=SMALLEST_SCALE)
    return (weight.float() / scale[:, None]).to(torch.float8_e4m3fn), scale


def from_float8(weight: Tensor, scale: Tensor) -> Tensor:
    """Float32 [out, …] of float8 [out, …] and its scale: one number, or one a row."""
    scale = scale.float().flatten()
    return weight.float() * (scale[0] if len(scale) == 1 else scale.view(-1, *[1] * (weight.ndim - 1)))


def float8_operations(operations: Any) -> Any:
    """The namespace of layer classes `operations`, with one class more, for the layers of the transformer."""
    return _WithFloat8(operations)


def block_linear(operations: Any) -> Any:
    """The class of the large layers: all products within the transformer's blocks."""
    return getattr(operations, "BlockLinear", operations.Linear)


def stored_in_float8(module: nn.Module) -> bool:
    """Whether this very module takes its weight in float8, with a scale."""
    return getattr(module, "stored_in_float8", False)


class _WithFloat8:
    def __init__(self, operations: Any) -> None:
        self._operations = operations
        self.BlockLinear = _float8_linear(operations.Linear)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)


def _float8_linear(base: type[nn.Linear]) -> type[nn.Linear]:
    casts = hasattr(base, "comfy_cast_weights")

    class Float8Linear(base):  # type: ignore[valid-type, misc]
        """y = x weight^T * scale, without bias."""

        stored_in_float8 = True
        # The host's own layers bring their weight to the input's device and type when this says so.
        comfy_cast_weights = True

        def __init__(
            self,
            in_features: int,
            out_features: int,
            bias: bool = False,
            device: Any = None,
            dtype: torch.dtype | None = None,
        ) -> None:
            if bias:
                raise ValueError("layers in float8 have no bias: it would be scaled too")
            super().__init__(in_features, out_features, False, device, torch.float8_e4m3fn)
            # A parameter, so that the host moves it along.
            self.scale = nn.Parameter(
                torch.empty(out_features, dtype=torch.float32, device=device), requires_grad=False
            )

        def reset_parameters(self) -> None:
            """Nothing to draw: weights come from a file."""

        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x) if casts else F.linear(x, self.weight.to(x.dtype))
            return y.mul_(self.scale.to(y.device, y.dtype))

    return Float8Linear
