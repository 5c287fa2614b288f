"""Save Picture with Facts: a saved picture tells how it was made, and that makes it again."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from jacobi_ar.tests.host.support import PREFIX, Host, node_of, read_workflow
from jacobi_ar.tests.host.test_bad_inputs import error_of
from jacobi_ar.tests.host.test_tokens import Graph
from jacobi_ar.tools import client
from jacobi_ar.tools.demo import ENCODE, GENERATE
from PIL import Image

pytestmark = pytest.mark.host

SAVE = f"{PREFIX}SavePicture"


def texts(host: Host, run: client.Run, index: int) -> dict[str, Any]:
    """The texts of a saved PNG."""
    picture = Image.open(io.BytesIO(client.fetch_image(host.url, run.images[index])))
    assert picture.format == "PNG"
    return {name: json.loads(text) for name, text in picture.info.items()}


def graph_that_saves(host: Host, prefix: str, **options: Any) -> Graph:
    graph = Graph(host, **options)
    save = graph.prompt[node_of(graph.prompt, "SaveImage")]
    save["class_type"] = SAVE
    save["inputs"] = {"image": save["inputs"]["images"], "tokens": graph.tokens, "filename_prefix": prefix}
    return graph


def test_each_picture_of_a_batch_has_its_own_seed_and_comes_again_by_it(host: Host) -> None:
    graph, workflow = (
        graph_that_saves(host, "facts", text="face", seed=20, batch_size=3),
        read_workflow("quickstart"),
    )
    run = host.run(graph.prompt, workflow=workflow)
    found = [texts(host, run, index) for index in range(3)]
    assert [each["jacobi_ar"]["seed"] for each in found] == ["20", "21", "22"]
    assert all(each["workflow"] == workflow and SAVE in str(each["prompt"]) for each in found)
    facts = found[2]["jacobi_ar"]
    assert facts["prompt"] == "face" and facts["promise"] == "same picture" and facts["guidance"] == 1.5
    assert facts["decoder"].startswith("Same-Picture Jacobi: window 31") and facts["version"]
    again = {name: facts[name] for name in ("guidance", "temperature", "top_k", "top_p", "rows", "columns")}
    alone = host.run(host.quickstart(text=facts["prompt"], seed=int(facts["seed"]), **again))
    assert np.array_equal(host.picture(alone), host.picture(run, 2))


def test_the_facts_are_there_when_the_tokens_came_from_the_cache(host: Host) -> None:
    host.run(graph_that_saves(host, "first", seed=30).prompt)
    graph = graph_that_saves(host, "second", seed=30)
    run = host.run(graph.prompt)
    assert node_of(graph.prompt, GENERATE) in run.cached
    assert texts(host, run, 0)["jacobi_ar"]["seed"] == "30"


def test_each_picture_of_a_list_has_its_own_prompt(host: Host) -> None:
    graph = graph_that_saves(host, "list", seed=31)
    listed = graph.add(f"{PREFIX}PromptList", prompts="red heart\noctopus")
    graph.prompt[node_of(graph.prompt, ENCODE)]["inputs"]["text"] = listed
    run = host.run(graph.prompt)
    found = [texts(host, run, index)["jacobi_ar"] for index in range(2)]
    assert [(facts["prompt"], facts["seed"]) for facts in found] == [("red heart", "31"), ("octopus", "31")]


def test_what_was_given_is_told_with_where_it_came_from(host: Host) -> None:
    graph = graph_that_saves(host, "given", text="face", seed=32)
    kept = graph.add(f"{PREFIX}KeepRows", tokens=graph.tokens, rows=9, picture=0)
    again = graph.generate(kept, seed=33)
    graph.prompt[node_of(graph.prompt, SAVE)]["inputs"].update(image=graph.decoded(again), tokens=again)
    facts = texts(host, host.run(graph.prompt), 0)["jacobi_ar"]
    assert facts["given"] == "the first 144 of 256 tokens (9 rows)"
    assert (facts["seed"], facts["given_from"]["seed"]) == ("33", "32")


def test_pictures_and_tokens_that_do_not_belong_together(host: Host) -> None:
    graph = graph_that_saves(host, "odd", seed=34)
    image = graph.add("EmptyImage", width=64, height=64, batch_size=2, color=0)
    graph.prompt[node_of(graph.prompt, SAVE)]["inputs"]["image"] = image
    assert "2 pictures and tokens hold 1" in error_of(host, graph.prompt, SAVE)
