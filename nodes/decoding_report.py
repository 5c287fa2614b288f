"""Decoding Report: how a run went, in plots and in a table."""

from __future__ import annotations

import torch
from comfy_api.latest import io
from torch import Tensor

from ..decoding import Trace
from . import host, sockets
from .drawing.report_sheet import report_sheet
from .errors import explained
from .inputs import check_wires
from .pictures import check_shape, to_image, to_pixels
from .trace_report import report_of, table
from .values import TokenGridValue

MOST_DRAWN = 4  # pictures of a batch


class JacobiARDecodingReport(io.ComfyNode):
    NAME = "Decoding Report"

    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="JacobiARDecodingReport",
            display_name=cls.NAME,
            category="Jacobi AR/analysis",
            description="Shows how a run went: tokens fixed in each pass, how the picture filled, the pass "
            "that fixed each token as a map, and how undecided the model was there (entropy). Of a batch "
            f"the first {MOST_DRAWN} pictures are drawn, one report each; the table has all.",
            inputs=[
                sockets.Trace.Input("trace", tooltip="The trace output of Generate Image Tokens."),
                io.Image.Input(
                    "pictures",
                    optional=True,
                    tooltip="Optional: the pictures of the same run, from Decode Image Tokens. The maps then "
                    "lie over them.",
                ),
                sockets.Tokens.Input(
                    "tokens",
                    optional=True,
                    tooltip="Optional: the tokens of the same run, for the prompt in the title.",
                ),
            ],
            outputs=[
                io.Image.Output(
                    display_name="report",
                    tooltip=f"One report a picture, of the first {MOST_DRAWN} of a batch.",
                ),
                io.String.Output(
                    display_name="table", tooltip="The figures of every picture as a Markdown table."
                ),
            ],
            hidden=[io.Hidden.prompt, io.Hidden.extra_pnginfo],
            is_output_node=True,
        )

    @classmethod
    def execute(
        cls, trace: Trace, pictures: Tensor | None = None, tokens: TokenGridValue | None = None
    ) -> io.NodeOutput:
        with explained(cls.NAME):
            check_wires("pictures", "tokens", trace=trace, pictures=pictures, tokens=tokens)
            if pictures is not None:
                check_shape("pictures", pictures)
                same_number("pictures", len(pictures), trace)
            if tokens is not None:
                same_number("tokens", tokens.pictures, trace)
            sheets = []
            for index in range(min(trace.batch, MOST_DRAWN)):
                host.stop_if_interrupted()
                picture = None if pictures is None else to_image(pictures[index])
                prompt = None if tokens is None else tokens.facts[index].prompt
                sheets.append(to_pixels(report_sheet(report_of(trace, index, prompt, picture))))
            report = host.to_output(torch.cat(sheets))
            text = table(trace)
            drawn = (
                f" · drawn: pictures 1 to {MOST_DRAWN} of {trace.batch}" if trace.batch > MOST_DRAWN else ""
            )
            host.show_text(f"{trace.decoder}\n{trace.passes} passes{drawn}")
            return io.NodeOutput(report, text, ui=host.preview_of(report, cls) | {"text": (text,)})


def same_number(name: str, count: int, trace: Trace) -> None:
    if count != trace.batch:
        raise ValueError(
            f"{name} holds {count} pictures, but the trace is of a run of {trace.batch}: connect what comes "
            "of the same Generate Image Tokens node."
        )
