"""What is measured: a model with its tokenizer, prompts and settings, and the conditions to decode under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from ...decoding import Codebook, Decoder, DecodeResult, SamplingSettings, TargetModel, decode, run_to_end
from ...model_loaders.image_model import ImageModel
from ...model_loaders.image_tokenizer import ImageTokenizer
from ...model_loaders.load import BUILTIN_MODEL, load_image_model
from ...model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from ..measure.common import PROMPTS, machine

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BUILTIN = "built-in"


@dataclass(frozen=True)
class Condition:
    """With prompts or without, at which guidance. Written `prompts@2`, `none@1`."""

    prompted: bool
    guidance: float

    @classmethod
    def read(cls, text: str) -> Condition:
        kind, _, guidance = text.partition("@")
        if kind not in ("prompts", "none"):
            raise SystemExit(f"a condition is prompts@GUIDANCE or none@GUIDANCE, not {text!r}")
        try:
            return cls(kind == "prompts", float(guidance or 1))
        except ValueError:
            raise SystemExit(f"{text!r}: the guidance after @ is a number") from None

    @property
    def key(self) -> str:
        return f"{'prompts' if self.prompted else 'none'}@{self.guidance:g}"

    @property
    def title(self) -> str:
        if self.prompted:
            return f"prompts, guidance {self.guidance:g}"
        return "no prompt" if self.guidance == 1 else f"no prompt, guidance {self.guidance:g}"


@dataclass
class Subject:
    """A loaded model and how it is sampled."""

    model: ImageModel
    tokenizer: ImageTokenizer | None
    files: Sequence[Path]  # that the figures depend on
    prompts: Sequence[str]
    sampling: SamplingSettings
    device: torch.device
    side: tuple[int, int] | None = None  # rows, columns; the model's first grid without

    def __post_init__(self) -> None:
        self.grid = self.model.grid(*self.side) if self.side else self.model.grids[0]
        self.codebook = None if self.tokenizer is None else Codebook(self.tokenizer.codebook)

    @cached_property
    def key(self) -> str:
        """Short hash of all that pictures depend on beside decoder, condition, prompts and seed."""
        digest = hashlib.sha256()
        for path in self.files:
            digest.update(_file_digest(path).encode())
        facts = [vars(self.sampling), self.grid.rows, self.grid.cols, str(self.model.dtype), self.device.type]
        digest.update(json.dumps(facts).encode())
        return digest.hexdigest()[:12]

    def key_of(self, condition: Condition) -> str:
        """The condition, and where it has prompts which they are."""
        if not condition.prompted:
            return condition.key
        return f"{condition.key} {hashlib.sha256(json.dumps(list(self.prompts)).encode()).hexdigest()[:8]}"

    @property
    def machine(self) -> str:
        if self.device.type == "cuda":
            return f"{torch.cuda.get_device_name(self.device)}, torch {torch.__version__}"
        return machine()

    def texts(self, condition: Condition, pictures: Sequence[int]) -> list[str]:
        return [self.prompts[i % len(self.prompts)] if condition.prompted else "" for i in pictures]

    def target(self, condition: Condition) -> TargetModel:
        return self.model.target(self.grid, condition.guidance)

    def run(
        self,
        target: TargetModel,
        decoder: Decoder,
        condition: Condition,
        pictures: Sequence[int],
        first_seed: int = 0,
        passes: int | None = None,
    ) -> DecodeResult | None:
        """Decode pictures by number: picture i has text i and seed `first_seed` + i. With `passes`, stop
        after so many (then without a result)."""
        prompts = [self.model.encode_prompt(text) for text in self.texts(condition, pictures)]
        seeds = [first_seed + i for i in pictures]
        with torch.inference_mode():
            reports = decode(target, prompts, decoder, self.sampling, seeds, codebook=self.codebook)
            if passes is None:
                return run_to_end(reports)
            for report in reports:
                if report.passes >= passes:
                    break
            return None


def load_subject(
    model: str = BUILTIN,
    tokenizer: str | None = None,
    text_encoder: str | None = None,
    prompts: Sequence[str] = (),
    dtype: str = "float32",
    device: str = "cpu",
    side: tuple[int, int] | None = None,
    **sampling: float | None,
) -> Subject:
    """Load what the command line names; settings that are None are the model's own."""
    place = torch.device(device)
    path = BUILTIN_MODEL if model == BUILTIN else Path(model)
    loaded = load_image_model(path, device=place, dtype=DTYPES[dtype], text_encoder=text_encoder)
    if tokenizer is None and model == BUILTIN:
        tokenizer = str(BUILTIN_TOKENIZER)
    pictures = None if tokenizer is None else load_image_tokenizer(tokenizer, device=place)
    if not prompts and model != BUILTIN:
        raise SystemExit(
            "a model of your own needs prompts: --prompt TEXT (again and again) or --prompts FILE"
        )
    settings = {
        key: getattr(loaded.defaults, key) if given is None else given for key, given in sampling.items()
    }
    files = [path] + ([] if tokenizer is None else [Path(tokenizer)])
    chosen = SamplingSettings(**settings)
    return Subject(loaded, pictures, files, list(prompts or PROMPTS), chosen, place, side)


def _file_digest(path: Path) -> str:
    if path.is_dir():  # a folder of weights: the names, sizes and times of its files
        found = sorted((p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in path.iterdir())
        return json.dumps(found)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
    return digest.hexdigest()
