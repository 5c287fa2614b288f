"""The templates as a person uses them: the address of its card, the Run button, the texts on the nodes, and
the picture that the card shows.

Four by default; JACOBI_AR_EVERY_TEMPLATE=1 takes all that need no download, about a quarter of a minute
each. The cards of the others are no pictures.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from jacobi_ar.tests.host.support import WORKFLOWS, Host, read_workflow
from jacobi_ar.tests.host.thumbnails import ALIKE, card_of, difference
from jacobi_ar.tests.toy_published import PUBLISHED
from jacobi_ar.tools import template_cards
from jacobi_ar.tools.browser import LOADED, SHOW_ALL, run_by_click
from jacobi_ar.tools.comfy_server import PACKAGE_FOLDER

pytestmark = [pytest.mark.host, pytest.mark.browser]

EVERY = os.environ.get("JACOBI_AR_EVERY_TEMPLATE", "0") != "0"
READY = [path.stem for path in WORKFLOWS if path.stem not in PUBLISHED]
SHOWN = READY if EVERY else ["quickstart", "inpaint_tokens", "prompt_list", "report"]
OPENED = "types => window.app.graph._nodes.map(node => node.type).sort().join() === types"
UNKNOWN = (
    "() => window.app.graph._nodes.filter(n => !LiteGraph.registered_node_types[n.type]).map(n => n.type)"
)
OUTPUTS = "() => window.app.nodeOutputs"
# Texts on nodes that do not show whole.
CUT = """() => [...document.querySelectorAll('.dom-widget .overflow-y-auto')]
    .filter(box => box.scrollHeight > box.clientHeight + 1)
    .map(box => box.innerText)"""


def open_template(page: Any, host: Host, name: str) -> None:
    """By the address behind its card."""
    page.goto(f"{host.url}/?template={name}&source={PACKAGE_FOLDER}")
    page.wait_for_function(LOADED)
    types = sorted(node["type"] for node in read_workflow(name)["nodes"])
    page.wait_for_function(OPENED, arg=",".join(types))


@pytest.mark.parametrize("name", SHOWN)
def test_a_template_gives_the_picture_on_its_card(page: Any, host: Host, name: str) -> None:
    open_template(page, host, name)
    assert page.evaluate(UNKNOWN) == []
    assert run_by_click(page) == "execution_success"
    pictures = template_cards.pictures_of(host.url, name, page.evaluate(OUTPUTS))
    page.evaluate(SHOW_ALL)
    page.wait_for_timeout(500)  # texts take their places when the nodes are drawn
    assert page.evaluate(CUT) == []
    assert difference(template_cards.card_of(pictures), card_of(name)) < ALIKE


def test_cards_of_other_pictures_are_not_taken_for_alike() -> None:
    cards = {path.stem: card_of(path.stem) for path in WORKFLOWS}
    alike = {
        (one, other)
        for one in cards
        for other in cards
        if one < other and difference(cards[one], cards[other]) < ALIKE
    }
    assert alike == set()
