"""Compare Decoders and Decoding Report in a real ComfyUI: what they show, and what a cancel leaves."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from jacobi_ar.tests.host.support import Host, node_of, pixels, when_progress
from jacobi_ar.tests.host.thumbnails import ALIKE, difference
from jacobi_ar.tools import client
from jacobi_ar.tools.demo import GENERATE, facts_of
from jacobi_ar.tools.workflow_api import Prompt, with_inputs
from PIL import Image

pytestmark = pytest.mark.host

COMPARE, REPORT = "JacobiARCompareDecoders", "JacobiARDecodingReport"
CELLS = 256


def comparison(host: Host, seed: int, **others: Any) -> Prompt:
    """The template with its three decoders: the same picture, SJD, GSD; the reference comes first."""
    return with_inputs(host.api("compare"), COMPARE, seed=seed, **others)


def rows_of(table: str) -> list[list[str]]:
    """Cells of a Markdown table's rows, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_the_comparison_has_a_sheet_pictures_and_figures(host: Host) -> None:
    prompt = comparison(host, seed=101)
    run = host.run(prompt)
    assert run.status == "success", run.error
    shown = run.outputs[node_of(prompt, COMPARE)]
    rows, told = rows_of(shown["text"][0]), shown["jacobi_ar"]
    assert [row[1] for row in rows] == ["reference", "same picture", "same distribution", "approximate"]
    for row, facts in zip(rows, told, strict=True):
        assert row[0] == facts["decoder"] and row[3] == str(facts["passes"])
        assert float(row[2]) == pytest.approx(facts["seconds"], abs=0.006)
        assert float(row[5].rstrip("x")) == pytest.approx(told[0]["seconds"] / facts["seconds"], abs=0.06)
    assert [row[6] for row in rows] == ["256 of 256", "256 of 256", "–", "–"]
    assert rows[0][3] == "256" and int(rows[1][3]) < 64
    pictures = run.outputs[node_of(prompt, "PreviewImage")]["images"]
    assert len(pictures) == 4 and len(shown["images"]) == 1
    reference, same = (picture_at(host, image) for image in pictures[:2])
    assert np.array_equal(reference, same)
    sheet = picture_at(host, shown["images"][0])
    assert sheet.shape[0] > 1000 and sheet.shape[1] == 768


def picture_at(host: Host, image: dict[str, str]) -> np.ndarray:
    return pixels(client.fetch_image(host.url, image))


def test_the_template_shows_what_the_promises_mean(host: Host) -> None:
    prompt = host.api("compare")
    images = host.run(prompt).outputs[node_of(prompt, "PreviewImage")]["images"]
    reference, same, sjd, gsd = (Image.fromarray(picture_at(host, image)) for image in images)
    assert difference(reference, same) == 0
    assert difference(reference, sjd) > ALIKE and difference(reference, gsd) > ALIKE


def test_progress_runs_over_all_decoders_and_the_sheet_grows(host: Host) -> None:
    prompt = comparison(host, seed=102)
    node = node_of(prompt, COMPARE)
    run = host.run(prompt)
    values = [(data["value"], data["max"]) for data in run.data("progress") if data["node"] == node]
    assert {total for _, total in values} == {4 * CELLS}
    assert values == sorted(values) and values[-1][0] == 4 * CELLS
    sheets = [Image.open(io.BytesIO(preview.image)) for preview in run.previews if preview.node == node]
    assert len(sheets) >= 4 and len({sheet.size for sheet in sheets}) == 1
    white = [float((np.asarray(sheet.convert("L")) > 250).mean()) for sheet in sheets]
    assert white[-1] > 3 * white[0]  # pictures of this model are white where nothing is drawn


def test_a_cancelled_comparison_goes_on_where_it_was(host: Host) -> None:
    """Cancelled in the second decoder: the next run takes the first from before."""
    prompt = comparison(host, seed=103)
    node = node_of(prompt, COMPARE)
    run = host.run(prompt, on_event=when_progress(CELLS + 20, host.interrupt))
    assert run.status == "interrupted" and node not in run.outputs
    assert max(data["value"] for data in run.data("progress")) < 2 * CELLS

    again = host.run(prompt)
    assert again.status == "success", again.error
    values = [data["value"] for data in again.data("progress") if data["node"] == node]
    assert min(values) >= CELLS  # no token of the first decoder is drawn again
    table = again.outputs[node]["text"][0]
    assert "Taken from before, not run again: Autoregressive." in table
    rows = rows_of(table)
    assert len(rows) == 4 and rows[1][6] == "256 of 256"

    alone = host.run(host.quickstart("autoregressive", text="face", seed=103, guidance=1))
    kept = again.outputs[node_of(prompt, "PreviewImage")]["images"][0]
    assert np.array_equal(picture_at(host, kept), host.picture(alone))


def test_another_decoder_runs_alone_and_another_seed_runs_everything(host: Host) -> None:
    prompt = comparison(host, seed=104)
    node = node_of(prompt, COMPARE)
    first = rows_of(host.run(prompt).outputs[node]["text"][0])
    more = comparison(host, seed=104)
    more["greedy"] = {"class_type": "JacobiARDecoderGreedy", "inputs": {"window": 31}}
    more[node]["inputs"]["decoder_8"] = ["greedy", 0]
    run = host.run(more)
    values = [data["value"] for data in run.data("progress") if data["node"] == node]
    assert min(values) >= 4 * CELLS and values[-1] == 5 * CELLS
    rows = rows_of(run.outputs[node]["text"][0])
    assert rows[:4] == first and rows[4][0].startswith("Greedy Jacobi") and rows[4][6] == "–"
    assert "Taken" not in host.run(comparison(host, seed=105)).outputs[node]["text"][0]


def test_without_the_reference_there_is_no_speed_up(host: Host) -> None:
    prompt = comparison(host, seed=106, reference=False)
    rows = rows_of(host.run(prompt).outputs[node_of(prompt, COMPARE)]["text"][0])
    assert len(rows) == 3 and {tuple(row[5:]) for row in rows} == {("–", "–")}


def test_a_string_in_place_of_a_decoder(host: Host) -> None:
    prompt = comparison(host, seed=107)
    prompt[node_of(prompt, COMPARE)]["inputs"]["decoder_3"] = "words"
    run = host.run(prompt)
    assert run.status == "error"
    assert run.error.startswith("Jacobi AR – Compare Decoders: decoder_3 must be connected to a decoder node")


def test_the_report_draws_four_pictures_and_tells_of_all(host: Host) -> None:
    prompt = with_inputs(host.api("report"), GENERATE, batch_size=6, seed=108)
    run = host.run(prompt)
    assert run.status == "success", run.error
    shown = run.outputs[node_of(prompt, REPORT)]
    rows, facts = rows_of(shown["text"][0]), facts_of(run)
    assert [int(row[3]) for row in rows] == facts["passes_of"]
    assert [row[1] for row in rows] == facts["seeds"]
    assert all(row[2] == "256" and 0 < float(row[7]) < 3 for row in rows)
    assert len(shown["images"]) == 4
    assert len({picture_at(host, image).tobytes() for image in shown["images"]}) == 4


def test_the_report_needs_the_trace_alone(host: Host) -> None:
    prompt = host.api("report")
    for name in ("pictures", "tokens"):
        del prompt[node_of(prompt, REPORT)]["inputs"][name]
    run = host.run(prompt)
    assert run.status == "success" and len(run.outputs[node_of(prompt, REPORT)]["images"]) == 1


def test_pictures_of_another_run_are_refused(host: Host) -> None:
    prompt = host.api("report")
    prompt["other"] = {
        "class_type": "EmptyImage",
        "inputs": {"width": 64, "height": 64, "batch_size": 3, "color": 0},
    }
    prompt[node_of(prompt, REPORT)]["inputs"]["pictures"] = ["other", 0]
    run = host.run(prompt)
    assert run.status == "error"
    assert "pictures holds 3 pictures, but the trace is of a run of 1" in run.error
