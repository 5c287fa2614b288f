"""From the workflow that ComfyUI's page saves to the prompt that its HTTP API takes.

The page does this itself before it queues (`graphToPrompt`); here it is done without a browser. A saved
workflow holds nodes, links and, for each node, its widget values by position. The prompt holds for each node
its class and its inputs by name: a value, or [node id, output number] for a link.
"""

from __future__ import annotations

import copy
from typing import Any

from .problem import Problem

WIDGET_TYPES = {"INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"}
CONTROL_VALUES = {"fixed", "increment", "decrement", "randomize"}  # of the slot after a seed
MUTED, BYPASSED = 2, 4
PAGE_ONLY = {"Note", "MarkdownNote"}  # drawn by the page, unknown to the server

Prompt = dict[str, dict[str, Any]]


def to_api(workflow: dict[str, Any], object_info: dict[str, Any]) -> Prompt:
    """The API prompt of a saved workflow; `object_info` is the server's answer to GET /object_info."""
    nodes = {node["id"]: node for node in workflow["nodes"]}
    links = {link[0]: (link[1], link[2]) for link in workflow["links"]}  # link id -> (node id, output number)
    runs = {id_: node for id_, node in nodes.items() if takes_part(node)}
    prompt: Prompt = {}
    for id_, node in runs.items():
        if node["type"] not in object_info:
            raise Problem(
                f"the workflow has a node of class {node['type']}, which this ComfyUI does not know.",
                "check that the package loaded, or that the class is spelled as it is registered.",
            )
        inputs = widget_inputs(node, object_info[node["type"]])
        for socket in node.get("inputs", ()):
            origin = links.get(socket.get("link"))
            origin = origin and follow_reroutes(origin, nodes, links)
            if origin and origin[0] in runs:
                inputs[socket["name"]] = [str(origin[0]), origin[1]]
        title = node.get("title") or object_info[node["type"]].get("display_name") or node["type"]
        prompt[str(id_)] = {"class_type": node["type"], "inputs": inputs, "_meta": {"title": title}}
    return prompt


def takes_part(node: dict[str, Any]) -> bool:
    if node.get("mode", 0) == BYPASSED:
        raise Problem(
            f"node {node['id']} ({node['type']}) of the workflow is bypassed, which only the page resolves.",
            "save the workflow with that node active or muted.",
        )
    return node.get("mode", 0) != MUTED and node["type"] not in PAGE_ONLY and node["type"] != "Reroute"


def follow_reroutes(
    origin: tuple[int, int], nodes: dict[int, dict[str, Any]], links: dict[int, tuple[int, int]]
) -> tuple[int, int] | None:
    while origin is not None and nodes[origin[0]]["type"] == "Reroute":
        origin = links.get(nodes[origin[0]]["inputs"][0].get("link"))
    return origin


def widget_inputs(node: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    """Widget values by name. They are saved by position; a seed's control takes the slot after it."""
    values = node.get("widgets_values") or []
    if isinstance(values, dict):
        return {name: values[name] for name, _ in widgets_of(info) if name in values}
    inputs: dict[str, Any] = {}
    slot = 0
    for name, options in widgets_of(info):
        if slot >= len(values):
            break  # saved before this widget was appended: the server fills in its default
        inputs[name] = values[slot]
        slot += 1
        if has_control(name, options) and slot < len(values) and values[slot] in CONTROL_VALUES:
            slot += 1
    return inputs


def widgets_of(info: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(name, options) of the inputs that are widgets, in the order that the page shows and saves them."""
    order = info.get("input_order") or {kind: list(group) for kind, group in info["input"].items()}
    found = []
    for kind in ("required", "optional"):
        for name in order.get(kind, ()):
            type_, options = [*info["input"][kind][name], {}][:2]
            is_widget = isinstance(type_, list) or type_ in WIDGET_TYPES
            if is_widget and not options.get("forceInput"):
                found.append((name, options))
    return found


def has_control(name: str, options: dict[str, Any]) -> bool:
    return options.get("control_after_generate", name in {"seed", "noise_seed"}) is not False


def default_inputs(info: dict[str, Any]) -> dict[str, Any]:
    """Every widget of a class at its default."""
    defaults = {}
    for name, options in widgets_of(info):
        group = info["input"].get("required", {})
        type_ = (group if name in group else info["input"]["optional"])[name][0]
        choices = type_ if isinstance(type_, list) else options.get("options", [])
        defaults[name] = options.get("default", choices[0] if choices else None)
    return defaults


def only(prompt: Prompt, class_start: str) -> str:
    """The id of the one node whose class starts so."""
    found = [id_ for id_, node in prompt.items() if node["class_type"].startswith(class_start)]
    if len(found) != 1:
        raise Problem(
            f"the workflow has {len(found)} nodes whose class starts with {class_start}; one is expected.",
            "use workflows/quickstart.json as it came with this package.",
        )
    return found[0]


def with_decoder(prompt: Prompt, decoder_class: str, object_info: dict[str, Any]) -> Prompt:
    """The same prompt with another decoder node, at that node's defaults."""
    changed = copy.deepcopy(prompt)
    node = changed[only(changed, "JacobiARDecoder")]
    if node["class_type"] != decoder_class:
        node["class_type"] = decoder_class
        node["inputs"] = default_inputs(object_info[decoder_class])
        node.pop("_meta", None)
    return changed


def with_inputs(prompt: Prompt, class_type: str, **inputs: Any) -> Prompt:
    """The same prompt with other values at the one node of this class, which has to have these inputs."""
    changed = copy.deepcopy(prompt)
    node = changed[only(changed, class_type)]
    for name, value in inputs.items():
        if name not in node["inputs"]:
            raise KeyError(f"{class_type} has no input {name!r}, only {sorted(node['inputs'])}")
        node["inputs"][name] = value
    return changed
