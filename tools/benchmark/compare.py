"""Closeness of decoders to step-by-step decoding: the pictures' points, names and likelihoods, and the
figures.

Features and likelihoods are kept beside the tokens, so that a new figure decodes nothing again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..problem import Problem
from . import closeness
from .features import features_of_drawings, features_of_tokens, nearest, pooled
from .likelihood import bits_a_token, peakedness
from .pictures import DECODERS, NOISE, REFERENCE, PictureStore, save
from .specs import canonical
from .subject import Condition, Subject
from .timing import BASELINE

PEAKED = 64  # pictures that the mean entropy of the laws is taken over


@dataclass(frozen=True)
class Seen:
    """A set of pictures as the statistics take it."""

    tokens: np.ndarray  # [R, cells] int32
    points: np.ndarray  # [R, d] float64
    bits: np.ndarray  # [R] float64
    named: np.ndarray | None  # [R] bool: the nearest drawing has the prompt's name


class Comparison:
    """Everything for the closeness of one subject's decoders."""

    def __init__(self, store: PictureStore, drawings: Path | None = None) -> None:
        self.store, self.folder = store, drawings
        if store.subject.tokenizer is None or not store.subject.tokenizer.can_encode:
            raise SystemExit("closeness needs an image tokenizer with an encoder: --tokenizer PATH")
        self._seen: dict[tuple[str, str, int, int], Seen] = {}

    @property
    def subject(self) -> Subject:
        return self.store.subject

    @cached_property
    def drawings(self) -> tuple[list[str], np.ndarray]:
        """Names and features of what pictures may be taken for: the given drawings, or in their place greedy
        pictures of the prompts themselves, step by step."""
        subject = self.subject
        assert subject.tokenizer is not None
        if self.folder is not None:
            names, features = features_of_drawings(subject.tokenizer, self.folder)
            if features.shape[1:3] != (subject.grid.rows, subject.grid.cols):
                found, wanted = features.shape[1:3], (subject.grid.rows, subject.grid.cols)
                raise Problem(
                    f"the drawings have {found} tokens, the pictures {wanted}", "leave out --drawings"
                )
            words = getattr(subject.model, "words", None)
            known = [words is None or all(w in words for w in name.split()) for name in names]
            return [n for n, k in zip(names, known, strict=True) if k], features[known]
        condition = Condition(True, 1.0)
        greedy = self.store.get("greedy_jacobi", condition, REFERENCE, len(subject.prompts))
        return list(subject.prompts), features_of_tokens(subject.tokenizer, greedy.tokens, subject.grid.cols)

    def seen(self, spec: str, condition: Condition, first_seed: int, count: int) -> Seen:
        """The first pictures of a decoder, made where they are missing, with all that figures need."""
        key = (canonical(spec), condition.key, first_seed, count)
        if key not in self._seen:
            tokens = self.store.get(spec, condition, first_seed, count).tokens
            features, bits = self._looked_at(spec, condition, first_seed, tokens)
            named = self._named(condition, features) if condition.prompted else None
            self._seen[key] = Seen(tokens, pooled(features), bits, named)
        return self._seen[key]

    def _looked_at(
        self, spec: str, condition: Condition, first_seed: int, tokens: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        subject, path = self.subject, self.store.path(spec, condition, first_seed).with_suffix(".seen.npz")
        assert subject.tokenizer is not None
        features, bits = np.zeros((0, 0, 0, 0), np.float16), np.zeros(0)
        if path.exists():
            with np.load(path) as file:
                features, bits = file["features"], file["bits"]
        have = len(bits)
        if have < len(tokens):
            new = features_of_tokens(subject.tokenizer, tokens[have:], subject.grid.cols).astype(np.float16)
            features = np.concatenate([features, new]) if have else new
            bits = np.concatenate([bits, bits_a_token(subject, condition, tokens[have:], have)])
            save(path, features=features, bits=bits)
        return features[: len(tokens)], bits[: len(tokens)]

    def _named(self, condition: Condition, features: np.ndarray) -> np.ndarray:
        names, drawn = self.drawings
        wanted = self.subject.texts(condition, range(len(features)))
        found = [names[i] for i in nearest(features, drawn)]
        return np.array([plain(a) == plain(b) for a, b in zip(wanted, found, strict=True)])

    def measure(self, spec: str, condition: Condition, pictures: int) -> dict[str, float]:
        """Figures of a decoder, or of step-by-step decoding with other seeds: the noise floor."""
        reference = self.seen(BASELINE, condition, REFERENCE, pictures)
        noise = self.seen(BASELINE, condition, NOISE, pictures)
        first_seed = NOISE if canonical(spec) == BASELINE else DECODERS
        own = self.seen(spec, condition, first_seed, pictures)
        found = figures(own, noise, reference, self.subject.model.vocabulary, condition.prompted)
        passes = self.store.get(spec, condition, first_seed, pictures).passes
        found |= {"passes": round(float(passes.mean()), 3)}
        if canonical(spec) == BASELINE:
            laws = peakedness(self.subject, condition, own.tokens[:PEAKED])
            found |= {key: round(value, 4) for key, value in laws.items()}
        return found


def plain(name: str) -> str:
    """Names as they are compared: `flag: japan` is `flag japan`."""
    return " ".join(name.lower().replace(":", " ").replace("-", " ").split())


def figures(
    own: Seen, noise: Seen, reference: Seen, vocabulary: int, paired: bool, resamples: int = 100
) -> dict[str, float]:
    """Each statistic of `own` against `reference`, what it exceeds the noise's by, and the half width of that
    excess's 95 % interval (1.96 bootstrap deviations; pictures are resampled, with prompts all three sets'
    together, since they show the same prompts).
    """
    count = len(own.bits)
    even = np.ones(count)

    def distances(one: Seen, weights: np.ndarray, reference_weights: np.ndarray) -> np.ndarray:
        return np.array(
            [
                closeness.total_variation(
                    one.tokens, reference.tokens, weights, reference_weights, vocabulary
                ),
                closeness.frechet(one.points, reference.points, weights, reference_weights),
            ]
        )

    def excess(own_w: np.ndarray, noise_w: np.ndarray, reference_w: np.ndarray) -> np.ndarray:
        """Over the noise: distances, bits and names (where there are any)."""
        moved = distances(own, own_w, reference_w) - distances(noise, noise_w, reference_w)
        # Two step-by-step sets together are the sharper mean for what needs no noise floor.
        bits = own_w @ own.bits / own_w.sum() - (noise_w @ noise.bits + reference_w @ reference.bits) / (
            noise_w.sum() + reference_w.sum()
        )
        return np.append(moved, bits)

    def resampled(rng: np.random.Generator) -> np.ndarray:
        drawn = [rng.multinomial(count, even / count).astype(float) for _ in range(1 if paired else 3)]
        return excess(*(drawn * 3)[:3])

    variation, frechet = distances(own, even, even)
    over = excess(even, even, even)
    # Its own excess is 0 by definition: the noise's row says how far the figure itself may be off.
    errors = 1.96 * closeness.bootstrap_errors(resampled, resamples)
    found = {
        "variation": variation,
        "variation_over": over[0],
        "variation_error": errors[0],
        "frechet": frechet,
        "frechet_over": over[1],
        "frechet_error": errors[1],
        "bits": float(own.bits.mean()),
        "bits_over": over[2],
        "bits_error": errors[2],
    }
    if own.named is not None:
        found["named"] = float(own.named.mean())
        found["named_error"] = 1.96 * float(own.named.std(ddof=1)) / count**0.5
    return {"pictures": count} | {key: round(float(value), 6) for key, value in found.items()}
