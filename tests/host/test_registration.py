"""The package in a real ComfyUI: it loads, and its nodes keep what saved workflows hold on to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jacobi_ar.tests.host.support import SNAPSHOT, Host, schema
from jacobi_ar.tools.comfy_server import PACKAGE_FOLDER, ComfyServer, import_failure

pytestmark = pytest.mark.host


def test_the_package_loads_without_an_error(server: ComfyServer) -> None:
    log = server.log.read_text(encoding="utf-8", errors="replace")
    # The folder's name alone would not do: the clone may have it too, and then ComfyUI lies in it.
    ours = [line for line in log.splitlines() if str(Path("custom_nodes", PACKAGE_FOLDER)) in line]
    assert ours and not import_failure(log)
    assert not [line for line in ours if "WARNING" in line.upper()]


def test_our_nodes_are_there_under_their_names(host: Host) -> None:
    released = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert set(released) <= set(host.ours)
    for info in host.ours.values():
        assert info["display_name"] and info["description"]
        assert info["category"].startswith("Jacobi AR/")


def test_every_input_and_output_has_a_tooltip(host: Host) -> None:
    without = []
    for id_, info in host.ours.items():
        for kind in ("required", "optional"):
            for name, (_, options) in info["input"].get(kind, {}).items():
                if not options.get("tooltip"):
                    without.append(f"{id_}.{name}")
        tips = info.get("output_tooltips") or []
        without += [
            f"{id_} output {name}"
            for number, name in enumerate(info["output_name"])
            if number >= len(tips) or not tips[number]
        ]
    assert not without


def test_inputs_and_outputs_are_only_ever_appended(host: Host, test_folder: Path) -> None:
    """Workflows save widget values by position and links by output number."""
    released = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    now = {id_: schema(info) for id_, info in sorted(host.ours.items())}
    for id_, before in released.items():
        for side in ("inputs", "outputs"):
            kept = now[id_][side][: len(before[side])]
            assert kept == before[side], f"{id_}: {side} of saved workflows moved or changed"
    if now != released:
        proposal = test_folder / SNAPSHOT.name
        proposal.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"nodes, inputs or outputs were added: copy {proposal} to {SNAPSHOT} and commit it")
