"""Token grids as files: what is written comes back, and everything else is refused in a sentence."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from jacobi_ar.nodes.picture_facts import ENCODED, GENERATED, MOST_SOURCES, PictureFacts
from jacobi_ar.nodes.token_files import FORMAT, is_token_file, read_tokens, to_bytes, token_choices
from jacobi_ar.nodes.tokenizer_identity import TokenizerIdentity, fingerprint
from jacobi_ar.nodes.values import TokenGridValue

EXAMPLE = Path(__file__).parents[2] / "nodes" / "example_tokens.safetensors"
IDENTITY = TokenizerIdentity("vq", 8, "0123456789abcdef")
SOURCE = PictureFacts(ENCODED, rows=2, columns=3)
FACTS = PictureFacts(
    GENERATED, "a model", "a family", "float32", "heart ♥", 2**64 - 1, "SJD: window 15", "approximate",
    7.5, 0.9, 0, 1.0, 2, 3, "the first 3 of 6 tokens (1 row)", SOURCE,
)  # fmt: skip
VALUE = TokenGridValue(torch.tensor([[[0, 7, 3], [-1, 2, 2]]]), IDENTITY, (FACTS,))


def written(folder: Path, tensors: dict[str, torch.Tensor] | None = None, **header: str | None) -> Path:
    """A file like that of VALUE with other tensors or texts; None leaves one out."""
    path = folder / "grid.safetensors"
    path.write_bytes(to_bytes(VALUE))
    with safetensors.safe_open(path, "pt") as file:
        texts = {**file.metadata(), **header}
    kept = {name: text for name, text in texts.items() if text is not None}
    tensors = {"tokens": VALUE.tokens.int()} if tensors is None else tensors
    path.write_bytes(safetensors.torch.save(tensors, kept))
    return path


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    back = read_tokens(written(tmp_path))
    assert torch.equal(back.tokens, VALUE.tokens) and back.tokens.dtype == torch.int64
    assert back.tokenizer == IDENTITY and back.facts == (FACTS,)


def test_a_file_of_a_picture_is_small() -> None:
    assert EXAMPLE.stat().st_size < 2_500


def test_the_example_is_of_the_packaged_tokenizer() -> None:
    example, vq = read_tokens(EXAMPLE), load_image_tokenizer(BUILTIN_TOKENIZER, device="cpu")
    example.check_tokenizer(TokenizerIdentity(vq.kind, vq.vocabulary, fingerprint(vq.codebook)))
    example.check_complete()
    assert example.facts[0].seed is not None and example.facts[0].prompt
    assert vq.decode(example.tokens).std() > 0.1


def test_facts_of_later_versions_are_left_out(tmp_path: Path) -> None:
    later = {**FACTS.as_json(), "mood": "sunny"}
    assert read_tokens(written(tmp_path, pictures=json.dumps([later]))).facts == (FACTS,)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"format": None}, "is no token grid of this package"),
        ({"format": "pt"}, "is no token grid of this package"),
        ({"format_version": "2", "package_version": "3.1.4"}, "version 2 of the format.* 3.1.4"),
        ({"tokenizer_kind": None}, "header of grid.safetensors is damaged .*tokenizer_kind"),
        ({"tokenizer_vocabulary": "many"}, "header of grid.safetensors is damaged"),
        ({"pictures": "[{}]"}, "header of grid.safetensors is damaged"),
        ({"pictures": "[7]"}, "header of grid.safetensors is damaged"),
        ({"pictures": '[{"made_by": "x", "seed": Infinity}]'}, "header of .*damaged .*infinity"),
        ({"pictures": '[{"made_by": "x", "prompt": "\\ud800 x"}]'}, "header of .*damaged .*surrogates"),
        ({"pictures": '[{"made_by": "x", "prompt": 7}]'}, "header of .*damaged .*prompt is no text"),
        ({"pictures": "nothing"}, "header of grid.safetensors is damaged"),
        ({"pictures": "[]"}, "tells of 0 pictures and holds 1"),
        ({"tokenizer_vocabulary": "7"}, "holds the token 7, and its tokenizer has 0 to 6"),
    ],
    ids=str,
)
def test_a_header_that_is_not_right(tmp_path: Path, header: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_tokens(written(tmp_path, **header))


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.zeros(1, 2, 3), "must be int32"),
        (torch.zeros(2, 3, dtype=torch.int32), "must be int32"),
        (torch.zeros(1, 0, 3, dtype=torch.int32), "not empty"),
        (torch.full((1, 2, 3), -2, dtype=torch.int32), "holds the token -2"),
        (torch.full((1, 2, 3), 8, dtype=torch.int32), "holds the token 8"),
    ],
    ids=str,
)
def test_tokens_that_are_not_right(tmp_path: Path, tensor: torch.Tensor, said: str) -> None:
    with pytest.raises(ValueError, match=f"grid.safetensors is damaged: .*{said}"):
        read_tokens(written(tmp_path, {"tokens": tensor}))


def test_files_that_are_not_safetensors_or_lack_the_tokens(tmp_path: Path) -> None:
    path = written(tmp_path, {"weights": torch.zeros(1)})
    with pytest.raises(ValueError, match="grid.safetensors could not be read.*Save Token Grid"):
        read_tokens(path)
    path.write_bytes(to_bytes(VALUE)[:-5])
    with pytest.raises(ValueError, match="could not be read"):
        read_tokens(path)
    path.write_text("a note", encoding="utf-8")
    with pytest.raises(ValueError, match="could not be read"):
        read_tokens(path)
    with pytest.raises(ValueError, match="gone.safetensors could not be read"):
        read_tokens(tmp_path / "gone.safetensors")


def test_only_token_grids_are_listed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out" / "tokens").mkdir(parents=True)
    (tmp_path / "in" / "a.safetensors").write_bytes(to_bytes(VALUE))
    (tmp_path / "in" / "b.safetensors").write_bytes(safetensors.torch.save({"w": torch.zeros(1)}))
    (tmp_path / "in" / "c.safetensors").write_text("a note", encoding="utf-8")
    (tmp_path / "in" / "d.png").write_bytes(to_bytes(VALUE))
    (tmp_path / "out" / "tokens" / "e.safetensors").write_bytes(to_bytes(VALUE))
    (tmp_path / "out" / "f.safetensors").write_bytes(b"\xff" * 8)
    found = token_choices({"": tmp_path / "in", " [output]": tmp_path / "out"})
    assert list(found) == ["a.safetensors", "tokens/e.safetensors [output]"]
    assert all(is_token_file(path) for path in found.values())
    assert FORMAT.encode() in (tmp_path / "in" / "a.safetensors").read_bytes()


def test_another_codebook_is_refused_and_rounding_is_not() -> None:
    codebook = torch.nn.functional.normalize(
        torch.randn(512, 8, generator=torch.Generator().manual_seed(1)), dim=-1
    )
    mine = TokenizerIdentity("vq", 512, fingerprint(codebook))
    rounded = codebook * (1 + 1e-6 * torch.randn(512, 8, generator=torch.Generator().manual_seed(2)))
    assert not torch.equal(rounded, codebook)
    assert mine.matches(TokenizerIdentity("vq", 512, fingerprint(rounded)))
    tokens = TokenGridValue(torch.zeros(1, 1, 1, dtype=torch.int64), mine, (SOURCE,))
    tokens.check_tokenizer(mine)
    others = [
        TokenizerIdentity("vq", 512, fingerprint(codebook.flip(0))),
        TokenizerIdentity("vq", 512, fingerprint(codebook[torch.randperm(512)])),
        TokenizerIdentity("vq", 512, fingerprint(codebook + 0.02 * torch.randn(512, 8))),
        TokenizerIdentity("other", 512, mine.codebook),
        TokenizerIdentity("vq", 511, mine.codebook),
        TokenizerIdentity("vq", 512, "what"),
        TokenizerIdentity("vq", 512, "not hexadecimal!"),
    ]
    for other in others:
        with pytest.raises(ValueError, match="another image tokenizer .* would be noise"):
            tokens.check_tokenizer(other)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")
def test_links_in_a_circle_and_pipes_do_not_stop_the_listing(tmp_path: Path) -> None:
    """It is made when ComfyUI's page asks what nodes there are."""
    path = written(tmp_path)
    for name in ("one", "two", "three"):
        (tmp_path / name).symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.safetensors")
    found: list[dict[str, Path]] = []
    listing = threading.Thread(target=lambda: found.append(token_choices({"": tmp_path})), daemon=True)
    listing.start()
    listing.join(20)
    assert found == [{path.name: path}]


def test_a_long_row_of_sources_is_cut() -> None:
    """Each time that a part is drawn anew adds one."""
    facts = SOURCE
    for _ in range(2000):
        facts = replace(FACTS, given_from=facts)
    back, sources = PictureFacts.from_json(json.loads(facts.text())), 0
    while back.given_from is not None:
        back, sources = back.given_from, sources + 1
    assert sources == MOST_SOURCES and back.seed == FACTS.seed
