"""Help pages and translations of the nodes: what the schema says is written into them, never typed.

A page (`web/docs/<node>.md`, in Chinese `web/docs/<node>/zh.md`) is prose by hand around blocks between
markers, and the blocks are made here from the server's answer to GET /object_info. `locales/` is made whole:
English from the same answer, Chinese by `locales/zh/translations.json`, which gives each English text its
Chinese one; a text that changed in a schema is thereby missing there until somebody translates it anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .comfy_server import ROOT

PREFIX = "JacobiAR"
DOCS = ROOT / "web" / "docs"
LOCALES = ROOT / "locales"
WIDGETS = {"INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"}
LANGUAGES = ("en", "zh")
# What the blocks say themselves, by language.
WORDS = {
    "en": {
        "inputs": "Inputs",
        "outputs": "Outputs",
        "default": "default",
        "on": "on",
        "off": "off",
        "to": "{} to {}",
        "text": "text",
        "wire": "wire",
        "or": ", ",
        "and": "; ",
        "optional": "optional",
        "none": "None.",
    },
    "zh": {
        "inputs": "输入",
        "outputs": "输出",
        "default": "默认",
        "on": "开",
        "off": "关",
        "to": "{} 到 {}",
        "text": "文本",
        "wire": "连线",
        "or": "、",
        "and": "；",
        "optional": "可选",
        "none": "无。",
    },
}

Classes = Mapping[str, dict[str, Any]]  # the answer to /object_info
Translate = Callable[[str], str]


class Translations:
    """English text -> Chinese; remembers what it lacked and what was asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.asked: set[str] = set()

    def __call__(self, text: str) -> str:
        if text:
            self.asked.add(text)
        return self.texts.get(text, text)

    @property
    def missing(self) -> list[str]:
        return sorted(self.asked - set(self.texts))

    @property
    def unused(self) -> list[str]:
        return sorted(set(self.texts) - self.asked)


def ours(classes: Classes) -> dict[str, dict[str, Any]]:
    return {id_: info for id_, info in sorted(classes.items()) if id_.startswith(PREFIX)}


def inputs_of(info: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any], bool]]:
    """(name, type or list of options, options, optional), in the order that the page shows."""
    for group in ("required", "optional"):
        for name, entry in info["input"].get(group, {}).items():
            kind, options = [*entry, {}][:2]
            yield name, kind, options, group == "optional"


def outputs_of(info: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(name, type, tooltip)."""
    tips = info.get("output_tooltips") or [""] * len(info["output"])
    for name, kind, tip in zip(info["output_name"], info["output"], tips, strict=True):
        yield name, kind, tip or ""


# ---- locales -----------------------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Plain text to a message of the page's translations (vue-i18n), where four characters mean something."""
    return re.sub(r"[{}@|]", lambda found: f"{{'{found[0]}'}}", text)


def node_defs(classes: Classes, translate: Translate) -> dict[str, Any]:
    """What ComfyUI's page takes from locales/<language>/nodeDefs.json."""

    def said(text: str) -> str:
        return escaped(translate(text))

    return {
        id_: {
            "display_name": said(info["display_name"]),
            "description": said(info["description"]),
            "inputs": {
                name: {
                    "name": said(options.get("display_name") or name),
                    "tooltip": said(options.get("tooltip", "")),
                }
                for name, _, options, _ in inputs_of(info)
            },
            "outputs": {
                str(number): {"name": said(name), "tooltip": said(tip)}
                for number, (name, _, tip) in enumerate(outputs_of(info))
            },
        }
        for id_, info in ours(classes).items()
    }


# ---- blocks of a page --------------------------------------------------------------------------------------


def blocks_of(info: dict[str, Any], language: str, translate: Translate) -> dict[str, str]:
    """Marker -> what stands between it and its end. Lists, since the help panel is too narrow for tables."""
    words = WORDS[language]
    inputs = [
        item(input_name(name, options, translate), values(kind, options, optional, words), options, translate)
        for name, kind, options, optional in inputs_of(info)
    ]
    outputs = [
        item(f"**{translate(name)}**", f"`{kind}`", {"tooltip": tip}, translate)
        for name, kind, tip in outputs_of(info)
    ]
    return {
        "node": f"# {translate(info['display_name'])}\n\n{translate(info['description'])}",
        "inputs": "\n".join([f"## {words['inputs']}\n", *(inputs or [words["none"]])]),
        "outputs": "\n".join([f"## {words['outputs']}\n", *(outputs or [words["none"]])]),
    }


def item(name: str, facts: str, options: Mapping[str, Any], translate: Translate) -> str:
    return f"* {name} · {facts}<br>{translate(options.get('tooltip') or '')}"


def input_name(name: str, options: dict[str, Any], translate: Translate) -> str:
    """As the page labels it; with the id that workflows hold, where the two differ."""
    shown = translate(options.get("display_name") or name)
    return f"**{name}**" if shown == name else f"**{shown}** `{name}`"


def values(kind: Any, options: dict[str, Any], optional: bool, words: Mapping[str, str]) -> str:
    """What an input takes, and its default."""
    choices = kind if isinstance(kind, list) else options.get("options", [])
    default = options.get("default", choices[0] if choices else None)
    if isinstance(kind, list) or kind == "COMBO":
        taken = words["or"].join(str(choice) for choice in choices)
    elif kind in ("INT", "FLOAT"):
        taken = words["to"].format(number(options["min"]), number(options["max"]))
        default = number(default)
    elif kind == "BOOLEAN":
        taken = f"{words['on']}{words['or']}{words['off']}"
        default = words["on"] if default else words["off"]
    elif kind == "STRING":
        taken = words["text"]
    else:
        taken = f"{words['wire']} `{kind}`"
    facts = [taken] if taken else []
    if kind in WIDGETS or isinstance(kind, list):
        facts += [f"{words['default']} **{default}**"] if default not in (None, "") else []
    elif optional:
        facts.append(words["optional"])
    return words["and"].join(facts)


def number(value: float) -> str:
    """-1.0 as -1, and the largest seed as people know it."""
    return "2^64 - 1" if value == 2**64 - 1 else f"{value:.15g}"


def filled(text: str, blocks: Mapping[str, str]) -> str:
    """The page with every block renewed. ValueError where it lacks one, or has one that does not exist."""
    names = re.findall(r"^<!-- (\w+) -->$", text, re.M)
    if sorted(names) != sorted(blocks):
        raise ValueError(
            f"needs the blocks {', '.join(blocks)}, each once; it has {', '.join(names) or 'none'}"
        )
    for name, block in blocks.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, rest = text.split(start)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the block {name} has no end")
        text = f"{before}{start}{block}\n{end}{after}"
    return text


# ---- everything --------------------------------------------------------------------------------------------


def page_path(id_: str, language: str) -> Path:
    """Where ComfyUI's page looks: under the language, then without one, so English serves all others."""
    return DOCS / f"{id_}.md" if language == "en" else DOCS / id_ / f"{language}.md"


def chinese() -> Translations:
    return Translations(json.loads((LOCALES / "zh" / "translations.json").read_text(encoding="utf-8")))


def wanted_files(classes: Classes) -> tuple[dict[Path, str], list[str]]:
    """Every file as it should be, and what only a person can mend."""
    translations = chinese()
    speakers: dict[str, Translate] = {"en": lambda text: text, "zh": translations}
    files: dict[Path, str] = {}
    faults: list[str] = []
    for language in LANGUAGES:
        translate = speakers[language]
        defs = node_defs(classes, translate)
        files[LOCALES / language / "nodeDefs.json"] = json.dumps(defs, ensure_ascii=False, indent=1) + "\n"
        for id_, info in ours(classes).items():
            path = page_path(id_, language)
            shown = path.relative_to(ROOT).as_posix()
            if not path.is_file():
                faults.append(f"{id_}: write {shown} (as a start, copy that of another node)")
                continue
            try:
                blocks = blocks_of(info, language, translate)
                files[path] = filled(path.read_text(encoding="utf-8"), blocks)
            except ValueError as error:
                faults.append(f"{shown}: {error}")
    expected = {page_path(id_, language) for id_ in ours(classes) for language in LANGUAGES}
    faults += [f"{path.relative_to(ROOT).as_posix()}: no such node" for path in all_pages() - expected]
    faults += [f"locales/zh/translations.json lacks: {text}" for text in translations.missing]
    faults += [f"locales/zh/translations.json has what no node says: {text}" for text in translations.unused]
    return files, faults


def all_pages() -> set[Path]:
    return set(DOCS.glob("*.md")) | set(DOCS.glob("*/*.md"))


def out_of_step(classes: Classes) -> list[str]:
    """What differs between the nodes and their pages and locales; empty where all is well."""
    files, faults = wanted_files(classes)
    stale = [path for path, text in files.items() if not path.is_file() or read(path) != text]
    return faults + [
        f"{path.relative_to(ROOT).as_posix()}: run `python tools/dev.py pages`" for path in stale
    ]


def write_pages(classes: Classes) -> list[str]:
    """Renews every file; the faults that remain."""
    files, faults = wanted_files(classes)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return faults


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
