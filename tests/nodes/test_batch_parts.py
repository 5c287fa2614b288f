"""A batch that does not fit is divided; its pictures and their histories stay what they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from jacobi_ar.decoding import (
    Decoder,
    DecodeResult,
    Promise,
    SamplingSettings,
    Trace,
    decode,
    pjd,
    same_picture,
)
from jacobi_ar.decoding.loop import run_to_end
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from jacobi_ar.nodes.batch_parts import in_parts, joined

SEEDS = [3, 4, 5, 6, 7]


def finished(pictures: slice) -> DecodeResult:
    seeds = SEEDS[pictures]
    trace = Trace(
        "x", Promise.SAME_PICTURE, seeds, np.zeros((len(seeds), 1, 1), np.int64), [[0] * len(seeds)]
    )
    return DecodeResult(torch.tensor(seeds).view(-1, 1, 1), trace)


def failing(most: int, error: Callable[[], Exception]) -> tuple[Callable[[slice], DecodeResult], list[int]]:
    """A run that has memory for `most` pictures; and the sizes that it was asked for."""
    asked: list[int] = []

    def run(pictures: slice) -> DecodeResult:
        asked.append(pictures.stop - pictures.start)
        if asked[-1] > most:
            raise error()
        return finished(pictures)

    return run, asked


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError,
        MemoryError,
        lambda: RuntimeError("MPS backend out of memory (MPS allocated 9 GB)"),
    ],
)
@pytest.mark.parametrize(
    ("most", "sizes"), [(5, [5]), (3, [5, 3, 2]), (2, [5, 3, 2, 2, 1]), (1, [5, 3, 2, 1, 1, 1, 1, 1])]
)
def test_parts_are_halved_and_what_is_finished_stays(
    error: type[Exception], most: int, sizes: list[int]
) -> None:
    run, asked = failing(most, error)
    tidied: list[bool] = []
    results = in_parts(5, 64, run, lambda: tidied.append(True))
    assert asked == sizes and len(tidied) == sum(size > most for size in sizes)
    assert joined(results).tokens.flatten().tolist() == joined(results).trace.seeds == SEEDS


def test_the_first_parts_have_the_size_that_fits() -> None:
    run, asked = failing(2, MemoryError)
    in_parts(5, 2, run, lambda: None)
    assert asked == [2, 2, 1]


@pytest.mark.parametrize(("most", "error"), [(0, MemoryError), (4, lambda: RuntimeError("another fault"))])
def test_other_faults_and_a_single_picture_raise(most: int, error: Callable[[], Exception]) -> None:
    run, _ = failing(most, error)
    with pytest.raises((MemoryError, RuntimeError)):
        in_parts(5, 64, run, lambda: None)


LIMITED = """
import resource, sys, types
package = types.ModuleType("jacobi_ar"); package.__path__ = [sys.argv[1]]; sys.modules["jacobi_ar"] = package
nodes = types.ModuleType("jacobi_ar.nodes"); nodes.__path__ = [sys.argv[1] + "/nodes"]
sys.modules["jacobi_ar.nodes"] = nodes
import torch
from jacobi_ar.nodes.batch_parts import in_parts

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 7 * 2**28, used + 7 * 2**28))
asked = []

def run(pictures):
    asked.append(pictures.stop - pictures.start)
    return len(torch.empty(asked[-1], 2**28))  # 1 GiB a picture, never touched: one fits

in_parts(4, 4, run, lambda: None)
print(asked)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_real_shortage_is_recognised() -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", LIMITED, root], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[4, 2, 1, 1, 1, 1]", done.stderr


@pytest.fixture(scope="module")
def model() -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=torch.float32)


@pytest.mark.parametrize("decoder", [same_picture(15), pjd(7)], ids=["same picture", "PJD"])
def test_parts_give_what_the_whole_batch_gives(model: ImageModel, decoder: Decoder) -> None:
    prompt = model.encode_prompt("red heart")

    def run(pictures: slice) -> DecodeResult:
        seeds = SEEDS[:3][pictures]
        target = model.target(model.grids[0], 1.5)
        return run_to_end(decode(target, [prompt] * len(seeds), decoder, SamplingSettings(), seeds))

    whole, parts = run(slice(0, 3)), joined(in_parts(3, 2, run, lambda: None))
    assert torch.equal(whole.tokens, parts.tokens)
    assert np.array_equal(whole.trace.step_of, parts.trace.step_of)
    assert whole.trace.accepted == parts.trace.accepted
    assert whole.trace.passes_of == parts.trace.passes_of
    assert np.allclose(whole.trace.entropy, parts.trace.entropy, atol=1e-4)
    assert (whole.trace.seeds, whole.trace.promise) == (parts.trace.seeds, parts.trace.promise)
