"""tools/builtin_model: every step for a few steps on shapes that it draws itself, and the parts with
teeth."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.load import load_image_model
from jacobi_ar.model_loaders.load_tokenizer import load_image_tokenizer
from jacobi_ar.tools.builtin_model import command, drawings, export, settings
from jacobi_ar.tools.builtin_model.card import card, names_page
from jacobi_ar.tools.builtin_model.command import run
from jacobi_ar.tools.builtin_model.corruption import corrupt
from jacobi_ar.tools.builtin_model.drawings import Drawing
from jacobi_ar.tools.builtin_model.loop import Plan, averaged_state, progress_of, train
from jacobi_ar.tools.builtin_model.names import has_skin_tone, words_of
from jacobi_ar.tools.builtin_model.network import Network
from jacobi_ar.tools.builtin_model.prompts import Variation, prompt_ids
from jacobi_ar.tools.builtin_model.selection import Choice, choose, vocabulary
from jacobi_ar.tools.builtin_model.sources import ALLOWED, SOURCES
from jacobi_ar.tools.builtin_model.tokenise import load_lessons
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All steps, by the command itself."""
    folder = tmp_path_factory.mktemp("builtin")
    assert run(["all", "--smoke", "--home", str(folder), "--device", "cpu"], None) == 0
    return folder


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    """The same training in a folder of its own."""
    return shutil.copytree(home, tmp_path / "copy")


def test_every_step_leaves_what_the_next_one_needs(home: Path) -> None:
    assert (home / "evaluation" / "sheet.png").exists()
    for stage, steps in (("tokenizer", 12), ("transformer", 12), ("denoiser", 8)):
        progress = progress_of(home / stage)
        assert progress.step == steps and progress.losses and progress.figures
        assert (home / stage / "progress.png").exists()


def test_the_package_computes_what_was_trained(home: Path) -> None:
    lessons = load_lessons(home)
    model = load_image_model(home / export.TRANSFORMER, device="cpu", dtype=torch.float32)
    network = Network(settings.smoke().transformer.size, len(lessons.words))
    weights = load_file(home / export.TRANSFORMER)
    network.load_state_dict(
        {name: weight.float() for name, weight in weights.items() if not name.startswith("denoiser.")}
    )
    texts = ["red circle", "noto style blue square", "flag green", ""]
    prompts = [model.encode_prompt(text) for text in texts]
    tokens = torch.randint(32, (len(texts), 15), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ids = torch.stack([prompt.tensors["ids"] for prompt in prompts])
        expected = network(network.embed(ids, tokens))
        target = model.target(model.grids[0], 1.0)
        first = target.prefill(prompts, 16)[:, None]
        slots = torch.arange(15).expand(len(texts), -1)
        after = target.forward(tokens, slots, slots, torch.arange(15) <= slots[..., None])
    torch.testing.assert_close(torch.cat([first, after], 1), expected, rtol=1e-4, atol=1e-4)


def test_the_tokenizer_that_is_loaded_gives_the_tokens_that_were_trained_on(home: Path) -> None:
    lessons, found = load_lessons(home), drawings.load(home / "drawings")
    tokenizer = load_image_tokenizer(home / export.TOKENIZER, device="cpu")
    pixels = torch.from_numpy(found.pixels[list(lessons.numbers)]).float() / 255
    same = tokenizer.encode(pixels).flatten(1) == lessons.tokens
    assert same.float().mean() > 0.95  # float16 weights move a few
    assert lessons.tokens.unique().numel() > 4


def test_the_files_say_how_they_were_made(home: Path) -> None:
    for name in (export.TRANSFORMER, export.TOKENIZER):
        with safe_open(home / name, "pt") as file:
            assert '"steps": 12' in file.metadata()["made"]


def test_the_card_names_every_source_and_figure(home: Path) -> None:
    text = card(home, json.loads((home / "evaluation" / "evaluation.json").read_text()), 32)
    for source in SOURCES:
        licence = f"[{source.licence}]({ALLOWED[source.licence]})"
        assert (
            f"`{source.package}` {source.version} ({source.drawings}) | {source.author} | {licence}" in text
        )
    assert "16 names, 1 seeds each" in text
    assert "| transformer | " in text and " | 1 | 12 | " in text
    assert "| denoiser" in text and " | 1 | 8 | " in text
    assert all(line.endswith("|") for line in text.split("\n") if line.startswith("|"))


def test_the_page_of_names_has_them_all(home: Path) -> None:
    lessons = load_lessons(home)
    names, page = lessons.names, names_page(lessons)
    assert f"{len(names)} names" in page
    flags, others = page.split("## Flags")[1].split("## Everything else")
    listed = [f"flag {one}" for one in flags.split("and: ")[1].strip().rstrip(".").split(", ")]
    shown = others.strip().rstrip(".").split(", ")
    assert sorted([*listed, *(name.strip("*") for name in shown)]) == names
    several = {one.name for one in lessons.about if one.style == "noto"}
    assert {name.strip("*") for name in shown if name.startswith("*")} == several


def test_what_is_installed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "package"
    for folder in (place, tmp_path / "docs" / "pictures", tmp_path / "docs" / "measured"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "BUILTIN_MODEL", place / export.TRANSFORMER)
    monkeypatch.setattr(command, "BUILTIN_TOKENIZER", place / export.TOKENIZER)
    command_line = ["install", "--smoke", "--home", str(home)]
    figures = home / "evaluation" / "evaluation.json"
    true = figures.read_text()
    figures.write_text(json.dumps(json.loads(true) | {"weights": ["of", "others"]}))
    assert run(command_line, None) == 1 and "of other weights" in capsys.readouterr().err
    assert not list(place.iterdir())
    figures.write_text(true)
    assert run(command_line, None) == 0
    for name in (export.TRANSFORMER, export.TOKENIZER):
        assert (place / name).read_bytes() == (home / name).read_bytes()
    assert (place / "MODEL_CARD.md").read_text(encoding="utf-8").startswith("# The built-in model")
    written = sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "docs").rglob("*.*"))
    assert written == ["docs/builtin_names.md", "docs/measured/denoiser.png", "docs/pictures/builtin.jpg"]


def test_all_again_makes_nothing_again(copied: Path) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*.safetensors")}
    sampled = sorted(copied.rglob("pictures-*"))
    assert run(["all", "--smoke", "--home", str(copied), "--device", "cpu"], None) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(copied.rglob("pictures-*")) == sampled


def test_another_seed_another_tokenizer_and_damaged_files_are_told_of(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--smoke", "--home", str(copied), "--device", "cpu"]
    assert run(["tokenizer", *line, "--seed", "2"], None) == 1
    assert "was begun with seed 1" in capsys.readouterr().err
    shutil.rmtree(copied / "tokenizer")
    assert run(["tokenizer", *line, "--seed", "2"], None) == 0
    assert run(["tokens", *line], None) == 0
    assert "the tokens are those" not in capsys.readouterr().out
    for name, step in (("lessons.npz", "transformer"), ("tokenizer/checkpoint.pt", "tokenizer")):
        (copied / name).write_bytes((copied / name).read_bytes()[:100])
        assert run([step, *line, "--seed", "2"], None) == 1
        assert "damaged" in capsys.readouterr().err
    (copied / "drawings" / "drawings.json").write_text("{}")
    assert run(["tokenizer", *line], None) == 1 and "drawings" in capsys.readouterr().err


def test_a_transformer_does_not_go_on_with_other_tokens(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--smoke", "--home", str(copied), "--device", "cpu"]
    assert run(["tokens", *command], None) == 0
    assert "the tokens are those of this tokenizer" in capsys.readouterr().out
    lessons = dict(np.load(copied / "lessons.npz"))
    lessons["tokens"][0, 0] = (lessons["tokens"][0, 0] + 1) % 32
    np.savez(copied / "lessons.npz", **lessons)
    assert run(["transformer", *command], None) == 1
    assert "not those that this transformer has learnt" in capsys.readouterr().err


class Toy:
    """Fits two numbers; asks to be stopped when looked at in step `stop`."""

    def __init__(self, stop: int | None = None) -> None:
        self.network: nn.Module = nn.Linear(2, 1)
        with torch.no_grad():
            self.network.weight.fill_(0.5)
            self.network.bias.zero_()
        self.optimisers = [torch.optim.AdamW(self.network.parameters(), lr=0.1)]
        self.stop = stop

    def loss(self, step: int, rng: torch.Generator) -> Tensor:
        x = torch.randn(8, 2, generator=rng)
        return (self.network(x)[:, 0] - x.sum(1)).square().mean()

    def look(self, averaged: nn.Module, step: int) -> dict[str, float]:
        if step == self.stop:
            os.kill(os.getpid(), signal.SIGTERM)
        return {}


def test_a_stopped_run_goes_on_as_if_it_never_stopped(tmp_path: Path) -> None:
    plan = Plan(steps=40, seed=3, look_every=5)
    assert train(tmp_path / "whole", Toy(), plan)
    assert not train(tmp_path / "cut", Toy(stop=15), plan)
    assert progress_of(tmp_path / "cut").step == 15
    assert train(tmp_path / "cut", Toy(), plan)
    whole, cut = (averaged_state(tmp_path / name) for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert train(tmp_path / "other", Toy(), Plan(steps=40, seed=4, look_every=5))
    assert not torch.equal(whole["weight"], averaged_state(tmp_path / "other")["weight"])


def test_corruption_leaves_targets_alone_and_is_heavier_without_a_prompt() -> None:
    tokens = torch.arange(400).remainder(50).repeat(64, 1)
    kept = tokens.clone()
    tokens[1::2] += 50
    bare = torch.arange(64) >= 32
    wrong = corrupt(tokens, bare, 100, torch.Generator().manual_seed(0)) != tokens
    assert torch.equal(tokens[0::2], kept[0::2])
    share = wrong.float().mean(1)
    assert share[~bare].max() < 0.85 and share[~bare].min() == 0
    assert share[bare].mean() > 1.2 * share[~bare].mean()


def test_names() -> None:
    assert words_of("face-with-tears-of-joy") == ("face", "tears", "joy")
    assert words_of("flag-Åland Islands") == ("flag", "aland", "islands")
    keys = [f"artist{tone}" for tone in ("", "-dark", "-light", "-medium", "-medium-dark", "-medium-light")]
    assert [has_skin_tone(key, keys) for key in keys] == [False] + [True] * 5
    assert not has_skin_tone("police-car-light", ["police-car", "police-car-light"])
    assert has_skin_tone("man-light-skin-tone-bald", [])


def test_some_names_come_in_all_styles() -> None:
    about = [
        Drawing(style, words)
        for style in ("flat", "noto", "twemoji")
        for words in (("red", "heart"), ("dog",), ("blue", "heart"))
    ] + [Drawing("flag", ("flag", "japan"))]
    chosen = [about[number] for number in choose(about, Choice(second=1))]
    assert sorted(one.style for one in chosen if one.name == "dog") == ["flat", "noto", "twemoji"]
    assert sorted(one.name for one in chosen if one.style == "flat") == ["blue heart", "dog", "red heart"]
    assert len(chosen) == 3 + 2 + 1


def test_prompts_of_the_training() -> None:
    drawing = Drawing("noto", ("red", "heart"), (("love",),))
    words = vocabulary([drawing])
    names = {number: word for word, number in words.items()}

    def said(variation: Variation, seed: int) -> list[str]:
        return [names[i] for i in prompt_ids(drawing, words, 8, variation, random.Random(seed))]

    assert said(Variation(0.0, 0.0, 0.0, 0.0, 0.0), 0) == ["<noto>", "red", "heart"] + ["<pad>"] * 5
    assert said(Variation(unnamed=1.0), 0) == ["<null>"] + ["<pad>"] * 7
    seen = {" ".join(said(Variation(0.0, 0.5, 0.5, 0.3, 0.0), seed)).split(" <pad>")[0] for seed in range(60)}
    assert seen == {f"{s} {n}" for s in ("<any>", "<noto>") for n in ("red heart", "heart red", "love")}


def test_every_trained_name_is_read_as_it_was_trained(home: Path) -> None:
    model, lessons = (
        load_image_model(home / export.TRANSFORMER, device="cpu", dtype=torch.float32),
        load_lessons(home),
    )
    for drawing in lessons.about:
        prompt = model.encode_prompt(" ".join(drawing.words))
        ids = [lessons.words[word] for word in drawing.words]
        assert prompt.tensors["ids"].tolist()[1 : 1 + len(ids)] == ids and not prompt.notes


@pytest.mark.parametrize(
    "damage",
    [
        lambda said: '{"any": "<where>"}',
        lambda said: json.dumps(json.loads(said) | {"names": ["purple dinosaur"]}),
        lambda said: json.dumps(json.loads(said) | {"other names": "dog"}),
        lambda said: json.dumps(json.loads(said) | {"names": [""]}),
        lambda said: json.dumps(json.loads(said) | {"names": [5]}),
        lambda said: json.dumps(json.loads(said) | {"styles": {"noto": ["x"]}}),
        lambda said: json.dumps(json.loads(said) | {"synonyms": {"puppy": {}}}),
    ],
)
def test_a_damaged_manner_of_prompts_is_refused(
    home: Path, tmp_path: Path, damage: Callable[[str], str]
) -> None:
    with safe_open(home / export.TRANSFORMER, "pt") as file:
        metadata = file.metadata()
    weights = load_file(home / export.TRANSFORMER)
    save_file(weights, tmp_path / "odd.safetensors", metadata | {"prompts": damage(metadata["prompts"])})
    with pytest.raises(CheckpointError, match="prompts"):
        load_image_model(tmp_path / "odd.safetensors", device="cpu", dtype=torch.float32)
