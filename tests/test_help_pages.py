"""The help pages as files, and what writes them; that they fit the nodes is tested in `host/`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jacobi_ar.tools import help_pages
from jacobi_ar.tools.help_pages import DOCS, LOCALES, Translations, blocks_of, escaped, filled, node_defs
from jacobi_ar.tools.help_pictures import MOST_BYTES, PICTURES

PAGES = sorted(help_pages.all_pages())
INFO = {
    "display_name": "Decoder: Test",
    "description": "What it does.",
    "input": {
        "required": {
            "model": ["MODEL", {"tooltip": "The model."}],
            "seed": ["INT", {"tooltip": "Which.", "default": 0, "min": 0, "max": 2**64 - 1}],
            "bound": ["FLOAT", {"tooltip": "How much.", "default": 0.15, "min": -1.0, "max": 1.0}],
            "start": ["COMBO", {"tooltip": "First.", "options": ["left", "above"], "default": "left"}],
        },
        "optional": {
            "mask": ["MASK", {"tooltip": "Where."}],
            "exact": ["BOOLEAN", {"tooltip": "How.", "default": True}],
            "name": ["STRING", {"tooltip": "Called.", "default": "x"}],
        },
    },
    "output": ["TOKENS"],
    "output_name": ["tokens"],
    "output_tooltips": ["The tokens."],
}
ENGLISH = str  # leaves a text as it is
EMPTY = "".join(f"<!-- {name} -->\n\n<!-- /{name} -->\n\n" for name in ("node", "inputs", "outputs"))


def test_every_input_stands_there_with_values_and_default() -> None:
    assert blocks_of(INFO, "en", ENGLISH)["inputs"].splitlines()[2:] == [
        "* **model** · wire `MODEL`<br>The model.",
        "* **seed** · 0 to 2^64 - 1; default **0**<br>Which.",
        "* **bound** · -1 to 1; default **0.15**<br>How much.",
        "* **start** · left, above; default **left**<br>First.",
        "* **mask** · wire `MASK`; optional<br>Where.",
        "* **exact** · on, off; default **on**<br>How.",
        "* **name** · text; default **x**<br>Called.",
    ]


def test_in_chinese_the_label_is_followed_by_the_id() -> None:
    chinese = Translations({"seed": "种子", "Which.": "哪一张。"})
    blocks = blocks_of(INFO, "zh", chinese)
    assert "* **种子** `seed` · 0 到 2^64 - 1；默认 **0**<br>哪一张。" in blocks["inputs"]
    assert "The model." in chinese.missing and not chinese.unused


def test_what_nobody_translated_and_what_nobody_says_is_told() -> None:
    chinese = Translations({"seed": "种子", "An old tooltip.": "旧的提示。"})
    defs = node_defs({"JacobiARTest": INFO, "Other": {}}, chinese)
    assert list(defs) == ["JacobiARTest"]
    assert defs["JacobiARTest"]["inputs"]["seed"]["name"] == "种子"
    assert defs["JacobiARTest"]["outputs"]["0"] == {"name": "tokens", "tooltip": "The tokens."}
    assert chinese.unused == ["An old tooltip."] and "Which." in chinese.missing


def test_characters_that_mean_something_in_a_message_are_literal() -> None:
    assert escaped("a {b} | c@d, 100 %") == "a {'{'}b{'}'} {'|'} c{'@'}d, 100 %"


def test_blocks_are_renewed_and_the_prose_around_them_stays() -> None:
    blocks = blocks_of(INFO, "en", ENGLISH)
    page = filled(EMPTY + "## Tips\n\nProse.\n", blocks)
    assert page.startswith("<!-- node -->\n# Decoder: Test\n\nWhat it does.\n<!-- /node -->\n")
    assert page.endswith("## Tips\n\nProse.\n") and filled(page, blocks) == page


@pytest.mark.parametrize(
    "broken",
    [
        EMPTY.replace("outputs", "results"),
        EMPTY + EMPTY,
        "Prose alone.",
        EMPTY.replace("<!-- /node -->", ""),
    ],
)
def test_a_page_without_its_blocks_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="block"):
        filled(broken, blocks_of(INFO, "en", ENGLISH))


def test_there_is_a_page_in_both_languages_with_the_same_headings() -> None:
    english = {path.stem for path in PAGES if path.parent == DOCS}
    assert english and {path.parent.name for path in PAGES if path.name == "zh.md"} == english
    for name in english:
        pages = (
            help_pages.page_path(name, language).read_text(encoding="utf-8") for language in ("en", "zh")
        )
        first, second = (re.findall(r"^#+", page, re.M) for page in pages)
        assert first == second, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_has_a_small_picture_and_links_that_the_panel_can_follow(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures
    for name in pictures:  # relative to docs/ in both languages: so does ComfyUI's page read them
        assert 0 < (DOCS / name).stat().st_size < MOST_BYTES
    assert all(link.startswith("https://") for link in re.findall(r"(?<!!)\[[^\]]+\]\(([^)]+)\)", text))
    assert ".md" not in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_the_papers_that_a_page_names_are_linked(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"arXiv (\d{4}\.\d{5})", text))
    assert named <= set(re.findall(r"https://arxiv\.org/abs/(\d{4}\.\d{5})\)", text))


def test_every_picture_is_used() -> None:
    used = {name for path in PAGES for name in re.findall(r"\(pictures/([^)]+)\)", path.read_text("utf-8"))}
    assert {path.name for path in PICTURES.iterdir()} == used


def test_chinese_is_chinese() -> None:
    """Names of methods and units stay as they are; sentences do not."""
    texts = json.loads((LOCALES / "zh" / "translations.json").read_text(encoding="utf-8"))
    for english, chinese in texts.items():
        assert re.search(r"[\u4e00-\u9fff]", chinese) or english == chinese in {"top_k", "top_p"}, english
        # Every number of a tooltip, such as a default or the end of a range, is there in Chinese too.
        assert set(numbers(english)) <= set(numbers(chinese)), english


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", re.sub(r"Lumina-mGPT 2\.0|\bc2i\b|\bt2i\b", "", text))
