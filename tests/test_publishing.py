"""What the ComfyUI registry and ComfyUI-Manager read: complete, well-formed, and true to the package."""

from __future__ import annotations

import json
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from jacobi_ar.model_loaders.companions import COMPANIONS

ROOT = Path(__file__).resolve().parents[1]
PUBLISHING = ROOT / "docs" / "publishing"
HUB = "https://huggingface.co"
# The registry's specification of pyproject.toml: one unknown "Environment ::" voids them all.
ACCELERATORS = {
    "GPU :: NVIDIA CUDA",
    "GPU :: AMD ROCm",
    "GPU :: Intel Arc",
    "GPU :: Apple Metal",
    "NPU :: Huawei Ascend",
}
MODEL_FIELDS = ["name", "type", "base", "save_path", "description", "reference", "filename", "url", "size"]
NODE_FIELDS = {
    "author",
    "title",
    "id",
    "reference",
    "files",
    "nodename_pattern",
    "install_type",
    "description",
}
WHOLE_REPOSITORY = "<huggingface>"


def listed(name: str, key: str) -> list[dict[str, Any]]:
    return json.loads((PUBLISHING / name).read_text(encoding="utf-8"))[key]


MODELS = listed("model-list.json", "models")
(PACKAGE,) = listed("custom-node-list.json", "custom_nodes")


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_registry_takes_the_metadata(pyproject: dict[str, Any]) -> None:
    project, comfy = pyproject["project"], pyproject["tool"]["comfy"]
    assert re.fullmatch(r"[a-z](?:[-_.]?[a-z0-9]+)+", project["name"]) and len(project["name"]) < 100
    assert "comfyui" not in project["name"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])
    assert project["license"] == {"file": "LICENSE"} and (ROOT / "LICENSE").is_file()
    assert 20 < len(project["description"]) < 300 and "\n" not in project["description"]
    assert comfy["PublisherId"] and comfy["DisplayName"]
    assert re.fullmatch(r">=\d+\.\d+\.\d+", comfy["requires-comfyui"])
    assert "web" not in comfy  # the page looks under the folder's name: WEB_DIRECTORY in __init__.py
    for classifier in project["classifiers"]:
        topic, _, rest = classifier.partition(" :: ")
        assert topic == "Operating System" or rest in ACCELERATORS


def test_nothing_is_installed_that_comfyui_does_not_bring(pyproject: dict[str, Any]) -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert pyproject["project"]["dependencies"] == []
    assert all(line.startswith("#") or not line.strip() for line in lines)


def test_the_version_is_in_the_changelog_and_in_the_workflows(pyproject: dict[str, Any]) -> None:
    version = pyproject["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for path in (ROOT / "workflows").glob("*.json"):
        for node in json.loads(path.read_text(encoding="utf-8"))["nodes"]:
            if node["type"].startswith("JacobiAR"):
                assert node["properties"]["ver"] == version, path.name


def test_the_archive_holds_what_runs_and_leaves_out_what_develops() -> None:
    ignored = [
        line
        for line in (ROOT / ".comfyignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]

    def stays_out(path: str) -> bool:
        return any(path.startswith(rule) if rule.endswith("/") else fnmatch(path, rule) for rule in ignored)

    needed = ("__init__.py", "nodes/", "decoding/", "model_loaders/builtin/builtin_ar.safetensors", "LICENSE",
              "web/docs/", "web/start_sizes.js", "locales/zh/nodeDefs.json", "workflows/quickstart.json",
              "pyproject.toml", "README.md", "docs/pictures/nodes.png")  # fmt: skip
    assert not [path for path in needed if stays_out(path)]
    assert all(stays_out(path) for path in ("tests/conftest.py", "tools/dev.py", ".ci/run"))
    assert all((ROOT / rule).exists() for rule in ignored)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["name"])
def test_a_model_entry_is_as_the_manager_has_them(model: dict[str, Any]) -> None:
    assert list(model) == MODEL_FIELDS and all(isinstance(value, str) and value for value in model.values())
    assert re.fullmatch(r"\d+(\.\d+)?(KB|MB|GB)", model["size"])
    assert ".." not in model["save_path"] and not model["save_path"].startswith("/")
    assert model["save_path"].split("/")[0] in {"ar_image", "text_encoders", "Janus-Pro"}
    repository = model["reference"].removeprefix(f"{HUB}/")
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", repository)
    if model["filename"] == WHOLE_REPOSITORY:
        assert model["url"] == repository and "[SNAPSHOT]" in model["description"]
    else:
        assert model["url"] == f"{HUB}/{repository}/resolve/main/{model['filename']}"
    assert re.search(r"MIT|Apache-2\.0|License", model["description"]), "its licence is said"


def test_what_a_listed_model_needs_is_listed_or_named() -> None:
    """Files of the companions' table: beside their model by an entry of their own, or named in its text."""
    assert len({(model["save_path"], model["filename"], model["url"]) for model in MODELS}) == len(MODELS)
    entries = {(model["filename"], model["reference"].removeprefix(f"{HUB}/")): model for model in MODELS}
    for family, folder in (
        ("LlamaGen c2i", "ar_image/LlamaGen-c2i"),
        ("LlamaGen t2i", "ar_image/LlamaGen-t2i"),
    ):
        found = COMPANIONS[(family, "image tokenizer")]
        assert entries[(found.files[0], found.repository)]["save_path"] == folder
        models = [
            model for model in MODELS if model["save_path"] == folder and "tokenizer" not in model["name"]
        ]
        assert models and all(found.files[0] in model["description"] for model in models)
    encoder = COMPANIONS[("LlamaGen t2i", "text encoder")]
    assert f"models/{entries[('config.json', encoder.repository)]['save_path']}" == encoder.folder
    names = {name for name, repository in entries if repository == encoder.repository}
    assert names >= {"config.json", "tokenizer.json", "model.safetensors.index.json"} and len(names) == 5
    lumina = COMPANIONS[("Lumina-mGPT 2", "image tokenizer")]
    text = entries[(WHOLE_REPOSITORY, "Alpha-VLLM/Lumina-mGPT-2.0")]["description"]
    assert lumina.files[0] in text and lumina.repository in text


def test_the_package_entry_is_as_the_manager_has_them(pyproject: dict[str, Any]) -> None:
    assert set(PACKAGE) == NODE_FIELDS and PACKAGE["files"] == [PACKAGE["reference"]]
    assert PACKAGE["install_type"] == "git-clone"
    assert PACKAGE["id"] == pyproject["project"]["name"]
    assert PACKAGE["title"] == pyproject["tool"]["comfy"]["DisplayName"]
    ids = re.findall(
        r'node_id="(\w+)"', "".join(path.read_text("utf-8") for path in (ROOT / "nodes").glob("*.py"))
    )
    assert ids and all(re.search(PACKAGE["nodename_pattern"], id_) for id_ in ids)


def test_what_is_still_to_be_filled_in_stands_in_the_checklist_alone() -> None:
    """The owner is not known: the places are these, and the checklist names each."""
    holders = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.toml", "*.md", "docs/**/*", "workflows/*.json", "web/**/*.md")
        for path in ROOT.glob(pattern)
        if path.suffix in {".toml", ".md", ".json"} and re.search(r"\bOWNER\b", path.read_text("utf-8"))
    }
    assert holders == {
        "pyproject.toml",
        "docs/publishing/checklist.md",
        "docs/publishing/custom-node-list.json",
    }
    checklist = (PUBLISHING / "checklist.md").read_text(encoding="utf-8")
    assert "custom-node-list.json" in checklist and "PublisherId" in checklist
