"""Compare Decoders: one prompt and one seed by several decoders, on a labelled sheet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import torch
from comfy_api.latest import io

from ..decoding import DecodingError, StepReport, decode
from ..model_loaders.image_transformer import Prompt, check_family
from . import host, sockets
from .comparison import Entry, Stopwatch, entries_of, figures_of, line, table
from .comparison_live import LiveSheet
from .errors import explained
from .finished_runs import FinishedRun, FinishedRuns, key_of
from .inputs import check_wire, check_wires
from .pictures import to_pixels
from .presets import DecoderValue, resolved
from .report import facts, progress_line
from .run_memory import estimate
from .run_settings import RunSettings, grid_warning, resolve
from .sampling_inputs import sampling_inputs
from .values import ModelValue

MEMORY_ADVICE = (
    "Choose fewer rows and columns or smaller windows, or load the model in bfloat16 or float16. Decoders "
    "that had finished are kept: the next run goes on from there."
)
MOST_DECODERS = 8
WARM_UP_PASSES = 4  # the first passes of a shape are slower: memory is found, kernels are chosen
FINISHED = FinishedRuns()


class JacobiARCompareDecoders(io.ComfyNode):
    NAME = "Compare Decoders"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARCompareDecoders",
            display_name=cls.NAME,
            category="Jacobi AR/analysis",
            description="Makes the same prompt and seed with up to eight decoders, one after the other, and "
            "shows the pictures side by side with what each promises, its seconds, passes and speed-up. "
            "Cancel loses nothing: finished decoders are kept in memory, and the next run with the same "
            "inputs goes on from there.",
            inputs=[
                sockets.Model.Input("model", tooltip="From Load AR Image Model."),
                sockets.Prompt.Input("prompt", tooltip="From Encode AR Prompt, encoded with the same model."),
                decoder_input(1),
                *sampling_inputs(
                    "Which picture, for all decoders (0 to 2^64 - 1, default 0). Another seed also "
                    "measures anew."
                ),
                io.Boolean.Input(
                    "reference",
                    default=True,
                    tooltip="On (default): Autoregressive, one token a pass, runs too where it is not among "
                    "the decoders; it comes first. It is what speed-ups and equal tokens are measured "
                    "against. Off: saves its time, those columns then say –.",
                ),
                *[decoder_input(number) for number in range(2, MOST_DECODERS + 1)],
            ],
            outputs=[
                io.Image.Output(
                    display_name="sheet", tooltip="All pictures with their figures on one sheet, to save."
                ),
                io.Image.Output(
                    display_name="pictures",
                    tooltip="The pictures alone, one a batch entry, in the order of the sheet.",
                ),
                io.String.Output(
                    display_name="table",
                    tooltip="The figures as a Markdown table. Seconds are those of decoding alone, after a "
                    "warm-up; prompt encoding, previews and pixels are not in them.",
                ),
            ],
            hidden=[io.Hidden.prompt, io.Hidden.extra_pnginfo],
            is_output_node=True,
        )

    @classmethod
    def execute(
        cls,
        model: ModelValue,
        prompt: Prompt,
        decoder_1: DecoderValue,
        seed: int,
        guidance: float,
        temperature: float,
        top_k: int,
        top_p: float,
        rows: int,
        columns: int,
        reference: bool,
        **more: DecoderValue,  # decoder_2 to decoder_8
    ) -> io.NodeOutput:
        with explained(cls.NAME, MEMORY_ADVICE):
            wired = {"decoder_1": decoder_1, **{name: more[name] for name in sorted(more) if more[name]}}
            check_wires(model=model, prompt=prompt)
            for name, value in wired.items():
                check_wire(name, value, "decoder")
            check_family([prompt], model.model.family)
            sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
            settings = resolve(model.model, seed, 1, guidance, sampling, (rows, columns))
            decoders = [resolved(decoder, model.model.family) for decoder in wired.values()]
            return compare(cls, model, prompt, entries_of(decoders, settings, reference), settings)


def decoder_input(number: int) -> io.Input:
    return sockets.Decoder.Input(
        f"decoder_{number}",
        optional=number > 1,
        tooltip=f"Decoder {number} of up to {MOST_DECODERS}, from a decoder node."
        + (" May stay open." if number > 1 else ""),
    )


def compare(
    node: type[io.ComfyNode], model: ModelValue, prompt: Prompt, entries: list[Entry], settings: RunSettings
) -> io.NodeOutput:
    needed = max(estimate(model.model, [prompt], entry.decoder, entry.settings).run for entry in entries)
    pixels = model.tokenizer.tokenizer.picture_bytes(settings.grid.cells)
    host.load_residents([model.loaded.resident, model.tokenizer.resident], max(needed, pixels))
    live = LiveSheet(model, prompt, entries, settings)
    progress = host.Progress(settings.grid.cells * len(entries))
    kept: list[str] = []
    try:
        for entry in entries:
            key = key_of(model, prompt, entry.decoder, entry.settings)
            finished = FINISHED.get(key)
            if finished is None:
                finished = run(model, prompt, entry, live, progress)
                FINISHED.keep(key, finished)
                live.finish(finished)
                progress.update(settings.grid.cells * len(live.runs), "", live.preview())
            else:
                kept.append(entry.name)
                live.finish(finished)
    except BaseException:
        host.show_text(f"stopped; {len(live.runs)} of {len(entries)} decoders are kept for the next run")
        raise
    found = figures_of(entries, live.runs)
    warning = list(filter(None, [grid_warning(model.model, settings)]))
    notes = [f"{model.model.name}, {', '.join(settings.lines())}", *warning]
    if kept:
        notes.append(f"Taken from before, not run again: {', '.join(kept)}.")
    text = table(entries, found, notes)
    sheet = host.to_output(to_pixels(live.draw()))
    host.show_text("\n".join([*warning, *(line(*pair) for pair in zip(entries, found, strict=True))]))
    told = [
        facts(done.trace, entry.decoder, entry.settings, done.seconds, 0.0)
        for entry, done in zip(entries, live.runs, strict=True)
    ]
    shown = host.preview_of(sheet, node) | {"text": (text,), "jacobi_ar": told}
    return io.NodeOutput(sheet, torch.cat(live.pictures), text, ui=shown)


def run(
    model: ModelValue, prompt: Prompt, entry: Entry, live: LiveSheet, progress: host.Progress
) -> FinishedRun:
    """One decoder, after a warm-up. DecodingErrors then begin with its name."""
    done, count = len(live.runs), len(live.entries)
    label = f"{done + 1} of {count}, {entry.name}"
    cells, watch = entry.settings.grid.cells, Stopwatch()
    try:
        progress.update(done * cells, f"{label}: warm-up")
        with closing(reports_of(model, prompt, entry)) as reports:
            for _ in islice(reports, WARM_UP_PASSES):
                host.stop_if_interrupted()
        with closing(reports_of(model, prompt, entry)) as reports:
            for report in watch.over(reports):
                host.stop_if_interrupted()
                fixed = sum(report.filled)
                text = f"{label}: {progress_line(fixed, report.total, report.passes, 1)}"
                progress.update(done * cells + fixed, text, live.growing(report))
    except DecodingError as error:
        raise DecodingError(f"{entry.name}: {error}") from error
    assert report.result is not None
    return FinishedRun(report.result.tokens, report.result.trace, watch.seconds)


def reports_of(model: ModelValue, prompt: Prompt, entry: Entry) -> Iterator[StepReport]:
    """One run of the entry. Its cache lives no longer than the iterator."""
    settings = entry.settings
    target = model.model.target(settings.grid, settings.guidance, model.loaded.resident.device)
    codebook = model.tokenizer.codebook
    yield from decode(target, [prompt], entry.decoder, settings.sampling, settings.seeds, codebook=codebook)
