"""Which image tokenizer "auto" takes: one that fits, wherever it lies, past whatever cannot be read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.nodes.tokenizer_search import choice_words, find_tokenizer

ROOT = Path("models")
MODEL = SimpleNamespace(name="a model", family="a family", tokenizer_kind="vq", vocabulary=8)
PACKAGED = Path("package", "vq.safetensors")
WITHIN_MODELS = ("whole.pt", "anole.pt")
CONTENT: dict[str, Any] = {
    "anole.pt": ("other", 8),
    "vq.pt": ("vq", 8),
    "vq_ds16_c2i.pt": ("vq", 8),
    "vq_ds16_t2i.pt": ("vq", 8),
    "again.pt": ("vq", 8),
    "larger.pt": ("vq", 16),
    "other.pt": ("other", 8),
    "transformer.pt": CheckpointError("no tokenizer"),
    "model.pt": CheckpointError("no tokenizer"),
    "whole.pt": ("vq", 8),
    "dangling.pt": FileNotFoundError(2, "No such file or directory"),
    "locked.pt": PermissionError(13, "Permission denied"),
    PACKAGED.name: ("vq", 8),
}


def load(path: Path) -> Any:
    content = CONTENT[path.name]
    if isinstance(content, Exception):
        raise content
    kind, vocabulary = content
    return SimpleNamespace(kind=kind, vocabulary=vocabulary, within_model=path.name in WITHIN_MODELS)


def found(*names: str, model: Any = MODEL, file: str = "m/model.pt") -> Path | None:
    """What is found for the model in `file` beside these files."""
    files = {name: ROOT / name for name in (file, *names)}
    return find_tokenizer(model, ROOT / file, files, {"built-in": PACKAGED}, load)


def test_what_cannot_be_read_is_passed_over() -> None:
    odd = ["dangling.pt", "locked.pt", "transformer.pt", "larger.pt", "other.pt"]
    assert found(*odd, "vq.pt") == ROOT / "vq.pt"
    assert found(*(f"m/{name}" for name in odd), "m/vq.pt") == ROOT / "m" / "vq.pt"


def test_the_one_beside_the_model_wins() -> None:
    assert found("vq.pt", "m/again.pt") == ROOT / "m" / "again.pt"


def test_the_one_in_the_model_itself_wins() -> None:
    assert found("vq.pt", "m/again.pt", file="m/whole.pt") == ROOT / "m" / "whole.pt"


def test_the_one_in_another_branch_of_the_models_own_folder_wins() -> None:
    """Anole's repository: weights in models/7b, image tokenizer in tokenizer. Each copy finds its own."""
    copies = [f"{copy}/tokenizer/vq.pt" for copy in ("first", "second")]
    for copy in ("first", "second"):
        place = ROOT / copy / "tokenizer" / "vq.pt"
        assert found(*copies, "vq.pt", file=f"{copy}/models/7b/model.pt") == place
    assert found("m/model.pt/tokenizer/vq.pt", "m/vq.pt") == ROOT / "m" / "model.pt" / "tokenizer" / "vq.pt"
    with pytest.raises(ValueError, match="first/tokenizer/vq.pt, second/tokenizer/vq.pt"):
        found(*copies)


def test_one_within_another_model_comes_after_all_others() -> None:
    other = SimpleNamespace(name="b", tokenizer_kind="other", vocabulary=8)
    assert found("m/anole.pt", "other.pt", model=other) == ROOT / "other.pt"
    assert found("m/anole.pt", "vq.pt", model=other) == ROOT / "m" / "anole.pt"


def test_several_that_fit_are_named() -> None:
    with pytest.raises(ValueError, match="vq.pt, again.pt"):
        found("vq.pt", "again.pt")


@pytest.mark.parametrize("kind", ["c2i", "t2i"])
def test_llamagens_two_are_told_apart_by_their_published_names(kind: str) -> None:
    both = ["vq_ds16_c2i.pt", "vq_ds16_t2i.pt"]
    model = SimpleNamespace(**{**vars(MODEL), "family": f"LlamaGen {kind}"})
    assert found(*both, "again.pt", model=model) == ROOT / f"vq_ds16_{kind}.pt"
    with pytest.raises(ValueError, match="several"):
        found("vq.pt", "again.pt", model=model)
    with pytest.raises(ValueError, match="several"):
        found(*both, model=MODEL)


def test_what_else_would_fit_is_said() -> None:
    files = {name: ROOT / name for name in ("m/vq.pt", "again.pt", "larger.pt", "dangling.pt", "whole.pt")}
    said = choice_words(MODEL, ROOT / "m" / "vq.pt", files, load)
    assert said == "image tokenizer: m/vq.pt (these fit too: again.pt)"
    files.pop("again.pt")
    assert choice_words(MODEL, ROOT / "m" / "vq.pt", files, load) == "image tokenizer: m/vq.pt"


def test_the_packaged_one_comes_last_and_only_where_it_fits() -> None:
    assert found("dangling.pt") == PACKAGED
    assert found("vq.pt") == ROOT / "vq.pt"
    assert found(model=SimpleNamespace(name="b", tokenizer_kind="llamagen", vocabulary=16384)) is None
