"""What happens while a run goes on: progress, previews, cancelling, and what is kept from run to run."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from jacobi_ar.tests.host.support import LOAD, Host, node_of, when_progress
from jacobi_ar.tools import client
from jacobi_ar.tools.demo import ENCODE, GENERATE, facts_of
from PIL import Image

pytestmark = pytest.mark.host

SLOW = {"decoder": "autoregressive", "batch_size": 8}  # long enough to be watched and stopped


def test_progress_counts_tokens_up_to_all_of_them(host: Host) -> None:
    prompt = host.quickstart(seed=11)
    generate = node_of(prompt, GENERATE)
    events = [data for data in host.run(prompt).data("progress") if data["node"] == generate]
    values = [(data["value"], data["max"]) for data in events]
    assert {total for _, total in values} == {256}
    assert values == sorted(values) and values[-1] == (256, 256)


def test_a_preview_of_the_partly_filled_picture_comes_on_the_generate_node(host: Host) -> None:
    prompt = host.quickstart(**SLOW, seed=12)
    run = host.run(prompt)
    mine = [preview for preview in run.previews if preview.node == node_of(prompt, GENERATE)]
    assert mine
    first, last = (Image.open(io.BytesIO(preview.image)) for preview in (mine[0], mine[-1]))
    assert first.format == "JPEG"
    assert grey_share(first) > 0.3 > grey_share(last)
    # Previews must not slow the run down much.
    facts = facts_of(run)
    assert facts["preview_seconds"] < 0.25 * facts["seconds"]


def grey_share(picture: Image.Image) -> float:
    """How much of a preview is still open: open cells are grey."""
    return float((np.abs(np.asarray(picture).astype(int) - 128).max(-1) < 12).mean())


def test_cancelling_stops_within_a_step_and_the_next_run_is_clean(host: Host) -> None:
    undisturbed = host.run(host.quickstart(**SLOW, seed=14))
    step = facts_of(undisturbed)["seconds"] / facts_of(undisturbed)["passes"]
    expected = host.picture(undisturbed)

    moments: list[float] = []

    def cancel() -> None:
        moments.append(time.monotonic())
        host.interrupt()

    total = 256 * SLOW["batch_size"]
    changed = host.quickstart(**SLOW, seed=15)
    run = host.run(changed, on_event=when_progress(total // 4, cancel))
    elapsed = time.monotonic() - moments[0]
    assert run.status == "interrupted"
    assert max(data["value"] for data in run.data("progress")) < total * 3 // 4
    assert elapsed < 2 * step + 1.0  # the second covers the server's own handling on a busy machine

    again = host.run(host.quickstart(**SLOW, seed=14))
    assert again.status == "success"
    assert np.array_equal(host.picture(again), expected)


def test_another_seed_keeps_the_model_and_the_prompt(fresh: Host) -> None:
    prompt = fresh.quickstart(seed=16)
    first = fresh.run(prompt)
    assert node_of(prompt, LOAD) not in first.cached
    second = fresh.run(fresh.quickstart(seed=17))
    assert {node_of(prompt, LOAD), node_of(prompt, ENCODE)} <= second.cached
    assert node_of(prompt, GENERATE) not in second.cached
    ran = {data["node"] for data in second.data("executing")}
    assert node_of(prompt, LOAD) not in ran and node_of(prompt, GENERATE) in ran


def test_the_same_prompt_again_runs_nothing(host: Host) -> None:
    prompt = host.quickstart(seed=18)
    host.run(prompt)
    assert host.run(prompt).cached >= {node_of(prompt, GENERATE)}


def test_the_model_is_still_good_after_everything_was_unloaded(host: Host) -> None:
    before = host.picture(host.run(host.quickstart(seed=19)))
    client.post(host.url, "/free", {"unload_models": True})
    host.run(host.quickstart(seed=20))
    assert np.array_equal(host.picture(host.run(host.quickstart(seed=19))), before)


def test_all_64_bits_of_a_seed_matter(host: Host) -> None:
    """Without a prompt the laws are open, so another seed is another picture."""
    low, high = (
        host.picture(host.run(host.quickstart(text="", seed=seed, guidance=1.0))) for seed in (3, 3 + 2**63)
    )
    assert not np.array_equal(low, high)
