"""The documents say what is there: every file, name, command and link in them exists."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
from jacobi_ar.model_loaders.companions import COMPANIONS
from jacobi_ar.tools.commands import parser

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
CONTRIBUTING = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")


def names_of(path: Path) -> set[str]:
    """What a module defines at its top level."""
    found: set[str] = set()
    for part in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            found.add(part.name)
        targets = (
            part.targets
            if isinstance(part, ast.Assign)
            else [part.target]
            if isinstance(part, ast.AnnAssign)
            else []
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_every_name_for_contributors_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", CONTRIBUTING)
    assert len(named) > 15
    for file, name in named:
        assert name in names_of(ROOT / file), f"{file}::{name}"


def test_the_smallest_examples_are_shown_as_they_are() -> None:
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```", CONTRIBUTING, re.M | re.S)
    assert len(blocks) == 2
    for _, block in blocks:
        first, code = textwrap.dedent(block).split("\n", 1)
        assert code.strip() in (ROOT / first.removeprefix("# ")).read_text(encoding="utf-8")


def test_every_family_and_verifier_is_one_file_as_said() -> None:
    families = (ROOT / "model_loaders" / "families" / "__init__.py").read_text(encoding="utf-8")
    listed = re.search(r"FAMILIES.*= \((.*?)\)", families, re.S)
    assert listed
    for name in re.findall(r"\w+", listed[1]):
        assert {"recognises", "load"} <= names_of(ROOT / "model_loaders" / "families" / f"{name}.py")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_links_of_a_document_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if not link.startswith("https://"):
            assert (path.parent / link).exists(), link
    folders = "decoding|docs|locales|model_loaders|nodes|tests|tools|web|workflows"
    for file in re.findall(rf"`((?:{folders})/[\w./-]*\w/?)(?:::\w+)?`", text):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_a_document_are_commands(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for command in re.findall(r"python tools/dev\.py (\w+)", text):
        assert parser().parse_args([command]).command == command
    for file in re.findall(r"python (tools/[\w/]+\.py)", text):
        assert (ROOT / file).is_file(), file


def test_the_page_of_models_names_every_source_that_errors_name() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    for companion in COMPANIONS.values():
        assert f"https://huggingface.co/{companion.repository})" in page, companion.repository


def said() -> str:
    """Every text in the package's code; what is filled in at run is a gap."""
    texts = []
    for folder in ("nodes", "model_loaders", "decoding"):
        for path in (ROOT / folder).glob("**/*.py"):
            for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(part, ast.JoinedStr):
                    texts.append("\0".join(v.value for v in part.values if isinstance(v, ast.Constant)))
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    texts.append(part.value)
    return "\0".join(texts)


def test_messages_that_troubleshooting_quotes_are_ours() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = set(re.findall("“([^”]+)”", text)) - {"quotation marks", "missing nodes", "Import Failed"}
    ours = said()
    assert len(quoted) > 10 and not [message for message in quoted if message not in ours]
