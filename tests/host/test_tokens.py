"""Token grids in a real ComfyUI: kept, masked, saved, loaded, encoded, compared."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jacobi_ar.tests.host.support import LOAD, PREFIX, Host, node_of
from jacobi_ar.tests.host.test_bad_inputs import choice_error, error_of
from jacobi_ar.tools.client import Run
from jacobi_ar.tools.comfy_server import ROOT
from jacobi_ar.tools.demo import ENCODE, GENERATE
from safetensors import safe_open
from safetensors.torch import save_file

pytestmark = pytest.mark.host

DECODE, SAVE = f"{PREFIX}DecodeTokens", f"{PREFIX}SaveTokens"
Link = list[Any]
Prompt = dict[str, dict[str, Any]]
EXACT, APPROXIMATE = "from the first masked token on (exact)", "masked cells only (approximate)"


class Graph:
    """The quickstart, and what is added to it."""

    def __init__(self, host: Host, **options: Any) -> None:
        self.host, self.prompt = host, host.quickstart(**options)
        self.model, self.tokenizer = [node_of(self.prompt, LOAD), 0], [node_of(self.prompt, LOAD), 1]
        self.tokens: Link = [node_of(self.prompt, GENERATE), 0]

    def add(self, class_type: str, **inputs: Any) -> Link:
        number = f"added {len(self.prompt)}"
        self.prompt[number] = {"class_type": class_type, "inputs": inputs}
        return [number, 0]

    def generate(self, fixed: Link, **changed: Any) -> Link:
        """Generate Image Tokens once more, with these tokens fixed."""
        inputs = self.prompt[node_of_first(self.prompt, GENERATE)]["inputs"]
        return self.add(GENERATE, **{**inputs, "fixed_tokens": fixed, **changed})

    def save(self, tokens: Link, name: str) -> Link:
        return self.add(SAVE, tokens=tokens, filename_prefix=f"tokens/{name}")

    def picture(self, tokens: Link) -> Link:
        return self.add("SaveImage", images=self.decoded(tokens), filename_prefix="tokens")

    def decoded(self, tokens: Link) -> Link:
        return self.add(DECODE, tokenizer=self.tokenizer, tokens=tokens)

    def mask(self, left: int, top: int, width: int, height: int) -> Link:
        """A rectangle, in pixels of a picture of 128 x 128."""
        ground = self.add("SolidMask", value=0.0, width=128, height=128)
        box = self.add("SolidMask", value=1.0, width=width, height=height)
        return self.add("MaskComposite", destination=ground, source=box, x=left, y=top, operation="add")

    def run(self) -> Run:
        run = self.host.run(self.prompt)
        assert run.status == "success", run.error
        return run


def node_of_first(prompt: Prompt, class_type: str) -> str:
    return next(id_ for id_, node in prompt.items() if node["class_type"] == class_type)


@pytest.fixture
def saved(test_folder: Path, host: Host) -> Path:
    """Where Save Token Grid puts the grids of this test."""
    folder = test_folder / "base" / "output" / "tokens"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def grid(path: Path) -> tuple[torch.Tensor, dict[str, str]]:
    with safe_open(path, "pt") as file:
        return file.get_tensor("tokens"), file.metadata()


def shown(run: Run, link: Link) -> str:
    return run.outputs[link[0]]["text"][0]


def facts(run: Run, link: Link) -> dict[str, Any]:
    return run.outputs[link[0]]["jacobi_ar"][0]


def test_kept_rows_stay_and_with_the_same_seed_the_same_picture_comes_again(host: Host, saved: Path) -> None:
    graph = Graph(host, text="face", seed=4)
    kept = graph.add(f"{PREFIX}KeepRows", tokens=graph.tokens, rows=9, picture=0)
    same, other = graph.generate(kept), graph.generate(kept, seed=100, batch_size=2)
    for tokens, name in ((graph.tokens, "whole"), (same, "same"), (other, "other")):
        graph.save(tokens, name)
    run = graph.run()
    assert "the first 144 of 256 tokens (9 rows)" in shown(run, kept)
    whole, again, others = (
        grid(saved / f"{name}_00001_.safetensors")[0] for name in ("whole", "same", "other")
    )
    assert torch.equal(again, whole)
    assert torch.equal(others[:, :9], whole[:, :9].expand(2, -1, -1))
    assert not torch.equal(others[0], whole[0]) and not torch.equal(others[0], others[1])
    assert facts(run, other)["promise"] == "same picture" and "given: the first 144" in shown(run, other)
    assert facts(run, other)["passes"] < facts(run, other)["autoregressive_passes"] == 256 - 144 + 1


@pytest.mark.parametrize("mode", [EXACT, APPROXIMATE])
def test_masked_tokens_are_those_of_step_by_step_decoding(host: Host, saved: Path, mode: str) -> None:
    """Same picture with fixed tokens: step by step with the same ones. Only one mode may promise more."""
    graph = Graph(host, text="face", seed=4)
    mask = graph.mask(24, 32, 72, 32)
    fixed = graph.add(f"{PREFIX}TokenMask", tokens=graph.tokens, mask=mask, mode=mode, picture=0)
    reference = graph.add(f"{PREFIX}DecoderAutoregressive", pad_to_window=0)
    fast, slow = graph.generate(fixed, seed=100), graph.generate(fixed, seed=100, decoder=reference)
    for tokens, name in ((graph.tokens, f"whole {mode}"), (fast, f"fast {mode}"), (slow, f"slow {mode}")):
        graph.save(tokens, name)
    run = graph.run()
    whole, fast_grid, slow_grid = (
        grid(saved / f"{n} {mode}_00001_.safetensors")[0] for n in ("whole", "fast", "slow")
    )
    assert torch.equal(fast_grid, slow_grid) and not torch.equal(fast_grid, whole)
    changed = (fast_grid != whole)[0]
    first = 4 * 16 + 3  # row and column of the mask's corner; a token is 8 pixels wide
    if mode == EXACT:
        assert not changed.flatten()[:first].any()
        assert facts(run, fast)["promise"] == "same picture"
    else:
        inside = torch.zeros(16, 16, dtype=torch.bool)
        inside[4:8, 3:12] = True
        assert not changed[~inside].any() and changed[inside].any()
        assert facts(run, fast)["promise"] == "approximate" and "seams may show" in shown(run, fast)


def test_what_is_saved_decodes_to_the_same_pixels_and_nothing_is_overwritten(host: Host, saved: Path) -> None:
    graph = Graph(host, seed=7, batch_size=2)
    graph.save(graph.tokens, "pair")
    direct = graph.run()
    graph.add(SAVE, tokens=graph.tokens, filename_prefix="tokens//pair")  # not from the cache
    graph.run()
    assert sorted(path.name for path in saved.iterdir()) == [
        "pair_00001_.safetensors",
        "pair_00002_.safetensors",
    ]
    tokens, header = grid(saved / "pair_00001_.safetensors")
    assert tokens.shape == (2, 16, 16) and header["tokenizer_kind"] == "built-in"
    assert '"seed": "7"' in header["pictures"] and '"seed": "8"' in header["pictures"]
    later = Graph(host)
    later.prompt = {id_: node for id_, node in later.prompt.items() if node["class_type"] == LOAD}
    loaded = later.add(f"{PREFIX}LoadTokens", file="tokens/pair_00001_.safetensors [output]")
    later.picture(loaded)
    run = later.run()
    assert "seed 7" in shown(run, loaded)
    for index in range(2):
        assert np.array_equal(host.picture(run, index), host.picture(direct, index))


def test_a_replaced_file_is_loaded_anew_and_an_unchanged_one_is_not(
    host: Host, saved: Path, test_folder: Path
) -> None:
    graph = Graph(host, seed=8)
    graph.save(graph.tokens, "one")
    graph.run()
    grid_file = test_folder / "base" / "input" / "swapped.safetensors"
    shutil.copy(saved / "one_00001_.safetensors", grid_file)
    load = Graph(host)
    loaded = load.add(f"{PREFIX}LoadTokens", file=grid_file.name)
    load.picture(loaded)
    load.run()
    assert loaded[0] in load.run().cached
    tokens, header = grid(grid_file)
    save_file({"tokens": (tokens + 1) % 1024}, grid_file, header)
    assert loaded[0] not in load.run().cached


def load_error(host: Host, file: object) -> str:
    graph = Graph(host)
    del graph.prompt[node_of(graph.prompt, "SaveImage")]  # ComfyUI would run this part alone
    graph.picture(graph.add(f"{PREFIX}LoadTokens", file=file))
    return choice_error(host, graph.prompt, f"{PREFIX}LoadTokens")


def test_a_grid_that_is_not_there_or_lies_elsewhere_is_not_opened(host: Host, saved: Path) -> None:
    outside = ROOT / "nodes" / "example_tokens.safetensors"
    for file in ("gone.safetensors", str(outside), "../../../../nodes/example_tokens.safetensors"):
        message = load_error(host, file)
        assert file in message and "was not found" in message
    assert "'a'" in load_error(host, {"a": 1})
    saved.mkdir(parents=True)
    (saved / "cut.safetensors").write_bytes(outside.read_bytes()[:40])
    assert "is there, but is no token grid" in load_error(host, "tokens/cut.safetensors [output]")


def test_tokens_of_another_codebook_are_refused_wherever_they_are_used(
    host: Host, saved: Path, test_folder: Path
) -> None:
    graph = Graph(host, seed=9)
    graph.save(graph.tokens, "mine")
    graph.run()
    tokens, header = grid(saved / "mine_00001_.safetensors")
    foreign = test_folder / "base" / "input" / "foreign.safetensors"
    save_file({"tokens": tokens}, foreign, {**header, "tokenizer_codebook": "0123456789abcdef"})
    said = "codebook 0123456789abcdef"
    decoding = Graph(host)
    decoding.picture(decoding.add(f"{PREFIX}LoadTokens", file=foreign.name))
    assert said in error_of(host, decoding.prompt, DECODE)
    keeping = Graph(host)
    loaded = keeping.add(f"{PREFIX}LoadTokens", file=foreign.name)
    rows = keeping.add(f"{PREFIX}KeepRows", tokens=loaded, rows=4, picture=0)
    keeping.prompt[keeping.tokens[0]]["inputs"]["fixed_tokens"] = rows
    assert said in error_of(host, keeping.prompt, GENERATE)


@pytest.mark.parametrize("prefix", ["../../outside", "/tmp/outside", "C:\\outside", ""])
@pytest.mark.parametrize("class_type", [SAVE, f"{PREFIX}SavePicture"])
def test_nothing_is_saved_outside_the_output_folder(host: Host, class_type: str, prefix: str) -> None:
    graph = Graph(host)
    inputs = {"image": graph.decoded(graph.tokens)} if class_type != SAVE else {}
    graph.add(class_type, tokens=graph.tokens, filename_prefix=prefix, **inputs)
    assert "filename_prefix" in error_of(host, graph.prompt, class_type)


def test_open_and_complete_tokens_where_they_do_not_belong(host: Host) -> None:
    graph = Graph(host)
    rows = graph.add(f"{PREFIX}KeepRows", tokens=graph.tokens, rows=4, picture=0)
    graph.picture(rows)
    assert "192 tokens are not drawn yet" in error_of(host, graph.prompt, DECODE)
    graph = Graph(host)
    graph.picture(graph.generate(graph.tokens, seed=5))
    assert "complete, so nothing is left to draw" in error_of(host, graph.prompt, GENERATE)
    graph = Graph(host, batch_size=2)
    rows = graph.add(f"{PREFIX}KeepRows", tokens=graph.tokens, rows=4, picture=0)
    graph.picture(graph.generate(rows, batch_size=3))
    assert "set batch_size to 2" in error_of(host, graph.prompt, GENERATE)


def test_a_decoded_picture_encodes_to_nearly_its_own_tokens(host: Host, saved: Path) -> None:
    graph = Graph(host, seed=1)
    encoded = graph.add(
        f"{PREFIX}EncodeImage",
        tokenizer=graph.tokenizer, image=graph.decoded(graph.tokens), fit="none", rows=0, columns=0,
    )  # fmt: skip
    compared = graph.add(
        f"{PREFIX}CompareTokens", tokenizer=graph.tokenizer, tokens=graph.tokens, other_tokens=encoded
    )
    graph.add("PreviewImage", images=compared)
    graph.save(graph.tokens, "drawn")
    graph.save(encoded, "encoded")
    run = graph.run()
    drawn, again = (grid(saved / f"{name}_00001_.safetensors")[0] for name in ("drawn", "encoded"))
    share = float((drawn == again).float().mean())
    assert share > 0.5
    assert f"| all | {share:.1%} |" in shown(run, compared)
    assert (
        len(
            run.outputs[next(id_ for id_, n in graph.prompt.items() if n["class_type"] == "PreviewImage")][
                "images"
            ]
        )
        == 1
    )


@pytest.mark.parametrize(
    ("size", "fit", "rows", "columns", "shape"),
    [
        ((131, 129), "centre crop", 0, 0, "1 x 16 x 16"),
        ((300, 200), "centre crop", 16, 16, "1 x 16 x 16"),
        ((300, 200), "resize", 16, 16, "1 x 16 x 16"),
        ((300, 200), "resize", 8, 0, "1 x 8 x 37"),
        ((3, 3), "centre crop", 0, 0, "1 x 1 x 1"),
        ((128, 64), "none", 0, 0, "1 x 8 x 16"),
    ],
)
def test_pictures_of_any_size_become_tokens(
    host: Host, size: tuple[int, int], fit: str, rows: int, columns: int, shape: str
) -> None:
    graph = Graph(host)
    image = graph.add("EmptyImage", width=size[0], height=size[1], batch_size=1, color=0x8040C0)
    encoded = graph.add(
        f"{PREFIX}EncodeImage", tokenizer=graph.tokenizer, image=image, fit=fit, rows=rows, columns=columns
    )
    graph.picture(encoded)
    assert shown(graph.run(), encoded).startswith(f"{shape} tokens")


def test_a_size_that_does_not_divide_is_named_with_what_would(host: Host) -> None:
    graph = Graph(host)
    image = graph.add("EmptyImage", width=131, height=128, batch_size=1, color=0)
    encoded = graph.add(
        f"{PREFIX}EncodeImage", tokenizer=graph.tokenizer, image=image, fit="none", rows=0, columns=0
    )
    graph.picture(encoded)
    message = error_of(host, graph.prompt, f"{PREFIX}EncodeImage")
    assert "131 x 128" in message and "128 x 128" in message


def test_the_word_prompt_is_used_for_each_line_of_a_list(host: Host) -> None:
    graph = Graph(host)
    listed = graph.add(f"{PREFIX}PromptList", prompts="red heart\n\n# not this\n  octopus \nflag japan\n")
    graph.prompt[node_of(graph.prompt, ENCODE)]["inputs"]["text"] = listed
    run = graph.run()
    assert len(run.images) == 3 and shown(run, listed) == "3 prompts"
    for index, text in enumerate(("red heart", "octopus", "flag japan")):
        assert np.array_equal(host.picture(run, index), host.picture(host.run(host.quickstart(text=text))))


@pytest.mark.parametrize("prompts", ["", " \n# only a note\n", "x\n" * 1001])
def test_a_list_without_prompts_or_with_too_many(host: Host, prompts: str) -> None:
    graph = Graph(host)
    graph.prompt[node_of(graph.prompt, ENCODE)]["inputs"]["text"] = graph.add(
        f"{PREFIX}PromptList", prompts=prompts
    )
    assert "prompts hold" in error_of(host, graph.prompt, f"{PREFIX}PromptList")
