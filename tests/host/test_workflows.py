"""The workflows that come with the package, run as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from jacobi_ar.tests.host.support import PREFIX, WORKFLOWS, Host, node_of, read_workflow
from jacobi_ar.tests.toy_published import PUBLISHED
from jacobi_ar.tools import client
from jacobi_ar.tools.demo import GENERATE, facts_of
from jacobi_ar.tools.workflow_api import default_inputs, widgets_of
from PIL import Image

pytestmark = pytest.mark.host
# The others name models that have to be downloaded: test_family_templates.py runs those with tiny weights.
READY = [path for path in WORKFLOWS if path.stem not in PUBLISHED]


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_a_workflow_runs_and_saves_pictures_that_hold_it(host: Host, path: Path) -> None:
    workflow = read_workflow(path.stem)
    prompt = host.api(path.stem)
    run = host.run(prompt, workflow=workflow)
    assert run.status == "success", run.error
    assert run.images
    for image in run.images:
        png = client.fetch_image(host.url, image)
        picture = Image.open(io.BytesIO(png))
        assert picture.format == "PNG" and np.asarray(picture).std() > 1
        embedded = json.loads(picture.info["prompt"])
        assert {id_: node["inputs"] for id_, node in embedded.items()} == {
            id_: node["inputs"] for id_, node in prompt.items()
        }
        assert json.loads(picture.info["workflow"]) == workflow


def test_the_quickstart_has_six_nodes_and_few_passes(host: Host) -> None:
    prompt = host.quickstart()
    assert len(prompt) == 6
    facts = facts_of(host.run(prompt))
    assert facts["autoregressive_passes"] == 256 and facts["passes"] <= 64
    assert facts["promise"] == "same picture" and facts["seeds"] == ["1"]


def test_same_picture_gives_the_pixels_of_step_by_step_decoding(host: Host) -> None:
    pictures = [
        host.picture(host.run(host.quickstart(decoder))) for decoder in ("same-picture", "autoregressive")
    ]
    assert np.array_equal(*pictures)


def test_the_comparison_workflow_shows_the_same_picture_twice(host: Host) -> None:
    prompt = host.api("same_picture")
    for node in prompt.values():
        if node["class_type"] == GENERATE:
            node["inputs"]["seed"] = 1
    run = host.run(prompt)
    assert len(run.images) == 2
    assert np.array_equal(host.picture(run, 0), host.picture(run, 1))


def test_every_decoder_runs_in_the_quickstart_at_its_defaults(host: Host) -> None:
    for decoder, info in host.ours.items():
        linked = [name for name in info["input_order"]["required"] if name not in dict(widgets_of(info))]
        if (
            info["output"] != ["JACOBI_AR_DECODER"] or linked
        ):  # one that takes another decoder has its workflow
            continue
        prompt = host.quickstart()
        node = prompt[node_of(prompt, f"{PREFIX}Decoder")]
        node["class_type"], node["inputs"] = decoder, default_inputs(info)
        run = host.run(prompt)
        assert run.status == "success", f"{decoder}: {run.error}"
        facts = facts_of(run)
        assert facts["passes"] <= facts["autoregressive_passes"]


def test_every_node_is_in_a_workflow(host: Host) -> None:
    used = {node["type"] for path in WORKFLOWS for node in read_workflow(path.stem)["nodes"]}
    decoders = {id_ for id_ in host.ours if id_.startswith(f"{PREFIX}Decoder")}  # run by the test above
    about_files = {f"{PREFIX}ListModels", f"{PREFIX}ConvertModel"}  # run by test_model_files.py
    assert set(host.ours) - decoders - about_files <= used


def test_a_batch_of_more_pictures_than_the_preview_shows_says_so(host: Host) -> None:
    prompt = host.quickstart(batch_size=5)
    assert "preview: 4 of 5 pictures" in "".join(host.run(prompt).outputs[node_of(prompt, GENERATE)]["text"])


def test_a_batch_holds_the_pictures_of_its_seeds(host: Host) -> None:
    together = host.run(host.quickstart(batch_size=3, seed=5))
    assert len(together.images) == 3
    assert facts_of(together)["seeds"] == ["5", "6", "7"]
    assert "preview" not in "".join(together.outputs[node_of(host.quickstart(), GENERATE)]["text"])
    alone = host.run(host.quickstart(seed=6))
    assert np.array_equal(host.picture(together, 1), host.picture(alone))
