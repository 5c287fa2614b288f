"""The numbers of a whole training: the published ones, and a few steps of everything for the tests."""

from __future__ import annotations

from dataclasses import dataclass

from .loop import Plan
from .network import Size
from .selection import Choice
from .tokenizer_network import TokenizerSize
from .train_denoiser import DenoiserPlan
from .train_tokenizer import TokenizerPlan
from .train_transformer import TransformerPlan


@dataclass(frozen=True)
class Settings:
    side: int  # pixels
    choice: Choice
    tokenizer: TokenizerPlan
    transformer: TransformerPlan
    denoiser: DenoiserPlan
    pictures: int  # sampled for the denoiser
    looked_at: int  # names sampled while the transformer trains
    seeds: int  # of the evaluation


def full(
    tokenizer_steps: int = 4_500, transformer_steps: int = 6_000, denoiser_steps: int = 2_000, seed: int = 1
) -> Settings:
    return Settings(
        side=128,
        choice=Choice(first=1600, second=300),
        tokenizer=TokenizerPlan(Plan(tokenizer_steps, seed, look_every=500), TokenizerSize()),
        transformer=TransformerPlan(Plan(transformer_steps, seed, look_every=500), Size()),
        denoiser=DenoiserPlan(Plan(denoiser_steps, seed, look_every=250)),
        pictures=1536,
        looked_at=32,
        seeds=3,
    )


def smoke(seed: int = 1) -> Settings:
    """Everything, tiny: a grid of 4 x 4, a few steps."""
    tokenizer = TokenizerSize(encoder=(8, 8, 16), decoder=(16, 8, 8), codes=32, code=8)
    size = Size(dim=32, n_layers=2, n_heads=2, ffn=64, vocab=32, grid=4)
    return Settings(
        side=32,
        choice=Choice(second=4),
        tokenizer=TokenizerPlan(
            Plan(12, seed, warm_up=2, look_every=6), tokenizer, batch=4, free_steps=4, seed_cells=200
        ),
        transformer=TransformerPlan(Plan(12, seed, warm_up=2, look_every=6), size, batch=4),
        denoiser=DenoiserPlan(Plan(8, seed, warm_up=2, look_every=4), hidden=32, batch=4),
        pictures=48,
        looked_at=4,
        seeds=1,
    )
