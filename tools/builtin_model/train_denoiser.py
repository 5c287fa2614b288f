"""Training of the denoiser: the transformer stays as it is, and what it predicts from embeddings under noise
comes as near as can be to what it predicts from the tokens."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...decoding.denoising import noise_level
from ...model_loaders.denoiser import MEAN, SPREAD, Denoiser, DenoiserConfig
from .loop import Plan, train
from .network import Network
from .precision import half_where_fast
from .prompts import Variation, padded, prompt_ids
from .selection import NULL
from .tokenise import Lessons

HELD_OUT = 32  # pictures that are looked at only


@dataclass(frozen=True)
class DenoiserPlan:
    plan: Plan
    hidden: int = 1024
    smallest: float = 3.0
    largest: float = 30.0
    unsure: float = 0.7  # most guesses that are wrong, where the noise is largest
    batch: int = 16
    rate: float = 1e-3
    sampled: float = 0.5  # of a batch: pictures that the model made without a prompt


class DenoiserJob:
    """Learns from the drawings, with their prompts, and from pictures that the model made without one.

    The target is not the next token but the model's whole law of it, computed on the tokens: a draft stands
    as often as the two laws overlap. And the embeddings under noise are not always the right tokens' but, the
    more of them the more noise there is, those of other likely tokens: a decode only has guesses.
    """

    def __init__(
        self,
        network: Network,
        lessons: Lessons,
        pictures: Tensor,  # [N, cells] int64, made without a prompt
        settings: DenoiserPlan,
        device: torch.device,
    ) -> None:
        torch.manual_seed(settings.plan.seed)
        self.frozen = network.to(device).requires_grad_(False).eval()
        self.lessons, self.settings, self.device = lessons, settings, device
        self.pictures, self.held_out = pictures[HELD_OUT:], pictures[:HELD_OUT]
        config = DenoiserConfig(network.size.dim, settings.hidden, settings.smallest, settings.largest)
        self.network: nn.Module = Denoiser(config, nn).to(device)
        table = network.tok_embeddings.weight
        statistics = self.network.statistics.weight.requires_grad_(False)
        statistics[MEAN], statistics[SPREAD] = table.mean(0), table.std(0)
        learnt = [weight for weight in self.network.parameters() if weight.requires_grad]
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(learnt, lr=settings.rate, betas=(0.9, 0.95), weight_decay=0.0)
        ]

    def loss(self, step: int, rng: torch.Generator) -> Tensor:
        ids, tokens = self.batch(rng)
        with half_where_fast(self.device):
            wanted, found = self.laws(self.network, ids, tokens, rng)
        # Kullback-Leibler divergence but for the entropy of the wanted laws, which nobody can lower.
        return -(wanted.softmax(-1) * found.log_softmax(-1)).sum(-1).mean()

    def batch(self, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Words [B, prefix] and tokens [B, cells]."""
        batch, words = self.settings.batch, self.lessons.words
        made = round(batch * self.settings.sampled)
        drawn = torch.randint(len(self.lessons.about), (batch - made,), generator=rng)
        said = random.Random(int(torch.randint(2**31, (), generator=rng)))
        prefix = self.frozen.size.prefix
        ids = [
            prompt_ids(self.lessons.about[i], words, prefix, Variation(unnamed=0.0), said)
            for i in drawn.tolist()
        ]
        ids += [padded([NULL], words, prefix)] * made
        chosen = self.pictures[torch.randint(len(self.pictures), (made,), generator=rng)]
        return torch.tensor(ids), torch.cat([self.lessons.tokens[drawn], chosen])

    def laws(
        self, denoiser: nn.Module, ids: Tensor, tokens: Tensor, rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Logits [M, V] of the cells that follow an input under noise, from tokens and from noise."""
        levels = window_levels(*tokens.shape, self.settings, rng)[:, :-1]
        noise = torch.randn(*levels.shape, self.frozen.size.dim, generator=rng)
        numbers, doubts = torch.rand(2, *levels.shape, generator=rng)
        ids, tokens, levels, noise, numbers, doubts = (
            x.to(self.device) for x in (ids, tokens[:, :-1], levels, noise, numbers, doubts)
        )
        under = levels > 0
        behind = torch.cat([torch.zeros_like(under[:, :1]), under], 1)
        clean = self.frozen.embed(ids, tokens)
        with torch.no_grad():
            exact = self.frozen(clean).float()  # [B, cells, V]
        cumulated = exact[:, :-1].softmax(-1).cumsum(-1)
        likely = torch.searchsorted(cumulated, numbers[..., None] * cumulated[..., -1:]).squeeze(-1)
        doubtful = doubts < self.settings.unsure * levels / self.settings.largest
        guesses = self.frozen.tok_embeddings(torch.where(doubtful, likely, tokens))
        noised = denoiser.normalised(guesses) + levels[..., None] * noise
        read = denoiser(noised, levels.clamp(min=self.settings.smallest))
        change = torch.where(under[..., None], read - self.frozen.tok_embeddings(tokens), 0.0)
        x = clean + F.pad(change, (0, 0, self.frozen.size.prefix, 0))
        return exact[behind], self.frozen(x, behind).float()

    @torch.no_grad()
    def look(self, averaged: nn.Module, step: int) -> dict[str, float]:
        rng = torch.Generator().manual_seed(0)
        nothing = padded([NULL], self.lessons.words, self.frozen.size.prefix)
        ids = torch.tensor([nothing] * len(self.held_out))
        wanted, found = self.laws(averaged, ids, self.held_out, rng)
        return {"overlap": float(torch.minimum(wanted.softmax(-1), found.softmax(-1)).sum(-1).mean())}


def window_levels(rows: int, cells: int, settings: DenoiserPlan, rng: torch.Generator) -> Tensor:
    """Levels of noise as a decode has them, [rows, cells]: 0 up to a place, then rising, mostly in stairs
    (tokens that began in one pass share a level), the largest from the end of the window on."""
    first = torch.randint(0, cells - 1, (rows, 1), generator=rng)
    length = 4 + torch.rand(rows, 1, generator=rng) * 48
    start = torch.rand(rows, 1, generator=rng) * 0.3
    share = start + (torch.arange(cells) - first) / length
    stairs = torch.randint(1, 12, (rows, 1), generator=rng)
    stepped = (share * stairs).floor() / stairs
    share = torch.where(torch.rand(rows, 1, generator=rng) < 0.7, stepped, share).clamp(0.0, 1.0)
    levels = noise_level(share, settings.smallest, settings.largest)
    return torch.where(torch.arange(cells) < first, 0.0, levels)


def train_denoiser(folder: Path, job: DenoiserJob) -> bool:
    """The `denoiser` command; False where it was stopped."""
    return train(folder, job, job.settings.plan)
