"""Training of the transformer on tokens: Muon for the matrices of the blocks, AdamW for the rest."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .corruption import corrupt
from .loop import Plan, train
from .network import Network, Size
from .precision import half_where_fast
from .prompts import Variation, prompt_ids
from .selection import NULL
from .start import start
from .tokenise import Lessons

EMPTY_ASKED = 0.2

Look = Callable[[nn.Module], dict[str, float]]


@dataclass(frozen=True)
class TransformerPlan:
    plan: Plan
    size: Size
    batch: int = 32
    matrix_rate: float = 0.015
    rate: float = 2e-3
    variation: Variation = field(default_factory=Variation)


class TransformerJob:
    def __init__(self, lessons: Lessons, settings: TransformerPlan, look: Look, device: torch.device) -> None:
        torch.manual_seed(settings.plan.seed)
        rng = torch.Generator().manual_seed(settings.plan.seed)
        self.lessons, self.settings, self.device, self._look = lessons, settings, device, look
        network = Network(settings.size, len(lessons.words))
        start(network, lessons.tokens, lessons.about, lessons.words, lessons.codebook, rng)
        self.network = network.to(device)
        self.empty = int(lessons.tokens.flatten().mode().values)  # the token of an empty cell
        matrices = [weight for weight in self.network.layers.parameters() if weight.ndim == 2]
        theirs = set(map(id, matrices))
        rest = [weight for weight in self.network.parameters() if id(weight) not in theirs]
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=settings.matrix_rate, weight_decay=0.01),
            torch.optim.AdamW(rest, lr=settings.rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]

    def loss(self, step: int, rng: torch.Generator) -> Tensor:
        ids, inputs, targets = self.batch(rng)
        # Half of all cells are empty and nearly certain: few of them are asked, each then counting for more.
        empty = targets == self.empty
        asked = ~empty | (torch.rand(targets.shape, generator=rng) < EMPTY_ASKED).to(empty.device)
        with half_where_fast(self.device):
            logits = self.network(self.network.embed(ids, inputs[:, :-1]), asked)
        losses = F.cross_entropy(logits.float(), targets[asked], reduction="none")
        return losses.where(~empty[asked], losses / EMPTY_ASKED).sum() / targets.numel()

    def batch(self, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Words [B, prefix], input tokens [B, cells] of which some are wrong, targets [B, cells]."""
        size, words = self.settings.size, self.lessons.words
        chosen = torch.randint(len(self.lessons.about), (self.settings.batch,), generator=rng)
        said = random.Random(int(torch.randint(2**31, (), generator=rng)))
        ids = torch.tensor(
            [
                prompt_ids(self.lessons.about[i], words, size.prefix, self.settings.variation, said)
                for i in chosen.tolist()
            ]
        )
        targets = self.lessons.tokens[chosen]
        inputs = corrupt(targets, ids[:, 0] == words[NULL], size.vocab, rng)
        return ids.to(self.device), inputs.to(self.device), targets.to(self.device)

    def look(self, averaged: nn.Module, step: int) -> dict[str, float]:
        return self._look(averaged)


def train_transformer(
    folder: Path, lessons: Lessons, settings: TransformerPlan, look: Look, device: torch.device
) -> bool:
    """The `transformer` command; False where it was stopped."""
    return train(folder, TransformerJob(lessons, settings, look, device), settings.plan)
