"""Generate Image Tokens: the loop that turns a prompt into a grid of tokens."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from comfy_api.latest import io
from PIL import Image
from torch import Tensor

from ..decoding import Decoder, DecodeResult, StepReport, Trace, decode
from ..model_loaders.image_transformer import Prompt, check_family
from . import host, sockets
from .batch_parts import in_parts, joined
from .errors import NodeMemoryError, explained, first_line, is_out_of_memory
from .fixed_tokens import fixed_shape, given_words, kept_for
from .inputs import check_wires
from .memory_advice import advice
from .node_text import BETWEEN
from .picture_facts import GENERATED, PictureFacts
from .presets import DecoderValue, resolved
from .previews import PREVIEWED_PICTURES, PreviewBudget, preview_picture, preview_words, without_holes
from .report import facts, progress_line, summary
from .run_memory import Estimate, estimate
from .run_settings import MOST_PICTURES, RunSettings, for_decoder, grid_warning, resolve
from .sampling_inputs import sampling_inputs
from .values import ModelValue, TokenGridValue, TokenizerValue

MEMORY_ADVICE = (
    "Lower batch_size, choose fewer rows and columns or a smaller window, or load the model in bfloat16 or "
    "float16 (guidance 1 halves the cache too)."
)
ROOM_SHARE = 0.9  # of the memory that is free, for the rest of it lies in pieces


class JacobiARGenerate(io.ComfyNode):
    NAME = "Generate Image Tokens"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARGenerate",
            display_name=cls.NAME,
            category="Jacobi AR/sampling",
            description="Makes the tokens of a picture with the connected decoder, shows the picture while "
            "it grows from the top (where ComfyUI's preview method is not none), and says how many passes "
            "of the model it took.",
            inputs=[
                sockets.Model.Input("model", tooltip="From Load AR Image Model."),
                sockets.Prompt.Input("prompt", tooltip="From Encode AR Prompt, encoded with the same model."),
                sockets.Decoder.Input(
                    "decoder",
                    tooltip="From one of the decoder nodes: how many tokens are tried at once, and what "
                    "that does to the picture.",
                ),
                *sampling_inputs(
                    "Which picture (0 to 2^64 - 1, default 0). Picture i of a batch has seed + i and "
                    "is the one that this seed gives alone, up to rounding: in bfloat16, SJD and PJD may "
                    "give another one in a batch; Autoregressive and Same-Picture did not where measured. "
                    "A seed means the same on every device, up to rounding too."
                ),
                io.Int.Input(
                    "batch_size",
                    default=1,
                    min=1,
                    max=MOST_PICTURES,
                    tooltip="Pictures made together (1 to 64, default 1). More uses the hardware better "
                    "and needs more memory; each picture advances at its own pace, and is the one of "
                    "its own seed, up to rounding (see seed).",
                ),
                sockets.Tokens.Input(
                    "fixed_tokens",
                    optional=True,
                    tooltip="Optional: tokens to keep, from Keep Rows or Token Mask; the rest is drawn. One "
                    "picture serves the whole batch. Exact where the kept tokens come first, approximate "
                    "where some lie behind drawn ones: the node says which.",
                ),
            ],
            outputs=[
                sockets.Tokens.Output(
                    display_name="tokens", tooltip="The pictures as tokens, for Decode Image Tokens."
                ),
                sockets.Trace.Output(
                    display_name="trace",
                    tooltip="How the run went: in which pass each token was fixed. For the nodes under "
                    "analysis.",
                ),
            ],
        )

    @classmethod
    def execute(
        cls,
        model: ModelValue,
        prompt: Prompt,
        decoder: DecoderValue,
        seed: int,
        guidance: float,
        temperature: float,
        top_k: int,
        top_p: float,
        rows: int,
        columns: int,
        batch_size: int,
        fixed_tokens: TokenGridValue | None = None,
    ) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            check_wires(
                "fixed_tokens", model=model, prompt=prompt, decoder=decoder, fixed_tokens=fixed_tokens
            )
            check_family([prompt], model.model.family)
            sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
            shape = (rows, columns)
            if fixed_tokens is not None:
                fixed_tokens.check_tokenizer(model.tokenizer.identity)
                shape = fixed_shape(model.model, fixed_tokens, rows, columns)
            settings = resolve(model.model, seed, batch_size, guidance, sampling, shape)
            if fixed_tokens is not None:
                settings = replace(settings, kept=kept_for(fixed_tokens, batch_size, shape))
            chosen = resolved(decoder, model.model.family)
            return generate(model, prompt, chosen, for_decoder(settings, chosen), fixed_tokens)


def generate(
    model: ModelValue,
    prompt: Prompt,
    decoder: Decoder,
    settings: RunSettings,
    fixed: TokenGridValue | None = None,
) -> io.NodeOutput:
    """One run: memory, the loop, and what came of it."""
    previews = LivePreviews(model.tokenizer) if host.previews_wanted() else None
    batch = decode_batch(model, prompt, decoder, settings, previews)
    trace = batch.result.trace
    left_out = preview_words(len(settings.seeds)) if previews else ""
    told = summary(trace, decoder, settings, batch.seconds, left_out)
    # Where the page cuts a long text, it cuts what the decoder's own node shows as well.
    lines = [grid_warning(model.model, settings), *told, *batch.memory_lines(), decoder.describe()]
    text = "\n".join(filter(None, lines))
    host.show_text(text)
    made = picture_facts(model, prompt, trace, settings, fixed)
    tokens = TokenGridValue(batch.result.tokens, model.tokenizer.identity, made)
    preview_seconds = previews.budget.spent if previews else 0.0
    report = facts(trace, decoder, settings, batch.seconds, preview_seconds)
    report |= {"estimated_bytes": batch.needed.weights + batch.needed.run, "parts": batch.parts}
    return io.NodeOutput(tokens, trace, ui={"text": (text,), "jacobi_ar": [report]})


@dataclass(frozen=True)
class Batch:
    """What decoding a batch gave."""

    result: DecodeResult
    seconds: float  # of decoding alone
    needed: Estimate  # for the largest part
    parts: list[int]  # pictures that were made together

    def memory_lines(self) -> list[str]:
        """What the run was expected to take, and how the batch was divided."""
        if len(self.parts) == 1:
            return [self.needed.line()]
        sizes = ", ".join(map(str, self.parts))
        divided = f"the batch did not fit: made in {len(self.parts)} parts of {sizes} pictures"
        return [self.needed.line(), divided]


def decode_batch(
    model: ModelValue, prompt: Prompt, decoder: Decoder, settings: RunSettings, previews: LivePreviews | None
) -> Batch:
    """All pictures, together or in as many parts as the memory asks for."""
    count = len(settings.seeds)
    residents = [model.loaded.resident] + ([model.tokenizer.resident] if previews else [])
    # A preview decodes one picture at a time.
    shown = model.tokenizer.tokenizer.picture_bytes(settings.grid.cells) if previews else 0
    free = host.room_for_run(model.loaded.resident, model.model.weight_bytes)
    room = int(ROOM_SHARE * free) - shown

    def needs(pictures: slice) -> Estimate:
        chosen = part(settings, pictures)
        return estimate(model.model, [prompt] * len(chosen.seeds), decoder, chosen)

    # More pictures never need less: the number of sizes that fit is the largest that fits.
    size = max(1, bisect_right(range(1, count + 1), room, key=lambda size: needs(slice(0, size)).run))
    needed = needs(slice(0, size))
    host.show_text(needed.line())
    progress, seconds = host.Progress(settings.grid.cells * count), 0.0

    def decode_part(pictures: slice) -> DecodeResult:
        nonlocal seconds
        chosen = part(settings, pictures)
        host.load_residents(residents, needs(pictures).run + shown)
        started = time.perf_counter()
        prompts = [prompt] * len(chosen.seeds)
        result = run(model, prompts, decoder, chosen, previews, progress, pictures.start)
        seconds += time.perf_counter() - started
        return result

    try:
        results = in_parts(count, size, decode_part, host.forget_leftovers)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        gpu = model.loaded.resident.device.type != "cpu"
        told = advice(model.model, decoder, settings, needs(slice(0, 1)), room, gpu)
        sentence = f"out of memory ({first_line(error)}). {told}"
        raise NodeMemoryError(JacobiARGenerate.NAME, sentence) from error
    return Batch(joined(results), seconds, needed, [len(result.trace.seeds) for result in results])


def part(settings: RunSettings, pictures: slice) -> RunSettings:
    """The settings of some of the pictures."""
    kept = None if settings.kept is None else settings.kept[pictures]
    return replace(settings, seeds=settings.seeds[pictures], kept=kept)


def run(
    model: ModelValue,
    prompts: Sequence[Prompt],
    decoder: Decoder,
    settings: RunSettings,
    previews: LivePreviews | None,
    progress: host.Progress,
    finished: int,
) -> DecodeResult:
    """The loop: one turn a forward, after so many `finished` pictures. The cache lives no longer than this
    function, whatever ends it."""
    target = model.model.target(settings.grid, settings.guidance, model.loaded.resident.device)
    codebook = model.tokenizer.codebook
    before = finished * settings.grid.cells
    left_out = preview_words(len(prompts)) if previews else ""
    given = 0 if settings.kept is None else int((settings.kept >= 0).sum())
    decoding = decode(target, prompts, decoder, settings.sampling, settings.seeds, settings.kept, codebook)
    with closing(decoding) as reports:
        for report in reports:
            host.stop_if_interrupted()
            fixed = sum(report.filled)
            picture = previews.picture(report) if previews else None
            line = progress_line(fixed, report.total, report.passes, len(prompts), given)
            line = BETWEEN.join(filter(None, [line, left_out]))
            progress.update(before + fixed, line, picture)
    assert report.result is not None
    return report.result


def picture_facts(
    model: ModelValue, prompt: Prompt, trace: Trace, settings: RunSettings, fixed: TokenGridValue | None
) -> tuple[PictureFacts, ...]:
    """How each picture of the run was made."""
    shared = PictureFacts(
        made_by=GENERATED,
        model=model.model.name,
        family=model.model.family,
        dtype=str(model.model.dtype).removeprefix("torch."),
        prompt=prompt.text,
        decoder=trace.decoder,
        promise=str(trace.promise),
        guidance=settings.guidance,
        temperature=settings.sampling.temperature,
        top_k=settings.sampling.top_k,
        top_p=settings.sampling.top_p,
        rows=settings.grid.rows,
        columns=settings.grid.cols,
    )
    if fixed is None or settings.kept is None:
        return tuple(replace(shared, seed=seed) for seed in settings.seeds)
    sources = fixed.facts * (1 if fixed.pictures > 1 else len(settings.seeds))
    return tuple(
        replace(shared, seed=seed, given=given_words(kept), given_from=source)
        for seed, kept, source in zip(settings.seeds, settings.kept, sources, strict=True)
    )


class LivePreviews:
    """The growing picture, as often as its time budget allows."""

    def __init__(self, tokenizer: TokenizerValue) -> None:
        self.tokenizer = tokenizer
        self.budget = PreviewBudget()

    def picture(self, report: StepReport) -> Image.Image | None:
        """None where none is due. A node keeps its last preview: the finished picture ends them."""
        finished = report.result is not None and self.budget.spent > 0
        if not (finished or self.budget.due()):
            return None
        return self.budget.draw(lambda: self.draw(report.grids()[:PREVIEWED_PICTURES]))

    def draw(self, grids: Tensor) -> Image.Image:
        return preview_picture(self.tokenizer.decode(without_holes(grids)), grids, host.preview_side())
