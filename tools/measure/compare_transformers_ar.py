"""Step-by-step decoding with guidance, ours over transformers' `generate`, in one run and in turns.

python tools/measure/compare_transformers_ar.py [--rounds 3] [--threads 2] [--dtype float32]

Both are randomly initialised models of LlamaGen-B's size (dim 768, 12 layers of 12 heads, 16384 codes) that
make 256 tokens on the CPU from a prompt of one, drawing from the whole law. Ours makes one image, its
conditional and unconditional rows in each forward, and draws by the shared noise. Theirs is LlamaForCausalLM
with a batch of 2 rows, without the guidance: so it has less to do. Wall time and processor time; other
programs disturb the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from common import machine, markdown_table
from jacobi_ar.decoding import SamplingSettings, autoregressive, decode
from random_models import random_llamagen_b
from transformers import LlamaConfig, LlamaForCausalLM

TOKENS = 256


def our_run(dtype: torch.dtype) -> Callable[[], None]:
    model = random_llamagen_b(dtype)
    grid, prompt = model.grid(16, 16), model.encode_prompt("207")

    def run() -> None:
        target = model.target(grid, guidance=2.0)
        reports = list(decode(target, [prompt], autoregressive(), SamplingSettings(), [1]))
        assert reports[-1].passes == TOKENS and reports[-1].result is not None

    return run


def their_runs(dtype: torch.dtype) -> dict[str, Callable[[], None]]:
    config = LlamaConfig(
        vocab_size=16384,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).to(dtype).eval()
    prompt = torch.full((2, 1), 207)

    def run(cache: str) -> None:
        made = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=True,
            top_k=0,
            max_new_tokens=TOKENS,
            cache_implementation=cache,
            disable_compile=True,
        )
        assert made.shape == (2, 1 + TOKENS)

    return {f"transformers, {cache} cache": lambda cache=cache: run(cache) for cache in ("dynamic", "static")}


def seconds(run: Callable[[], None]) -> tuple[float, float]:
    """(wall, processor)"""
    wall, processor = time.perf_counter(), time.process_time()
    with torch.inference_mode():
        run()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dtype = getattr(torch, options.dtype)
    runs = {"ours": our_run(dtype)} | their_runs(dtype)
    times = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    best = {name: [min(kind) for kind in zip(*found, strict=True)] for name, found in times.items()}
    ours = best["ours"]
    rows = [
        [name, *(f"{t:.2f} s ({t / TOKENS * 1000:.1f} ms a token)" for t in found)]
        + [f"{t / our:.2f}" for t, our in zip(found, ours, strict=True)]
        for name, found in best.items()
    ]
    print(f"{machine()}, {options.dtype}, best of {options.rounds}\n")
    print(markdown_table(["", "wall", "processor", "wall / ours", "processor / ours"], rows))


if __name__ == "__main__":
    main()
