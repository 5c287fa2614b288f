"""The target model with its cache gives what one pass over the whole sequence gives, however it is fed.

In float64, against a plain implementation without a cache; the model is LlamaGen's class-to-image, tiny and
random.
"""

from __future__ import annotations

import pytest
import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.errors import GridError, PromptError
from jacobi_ar.model_loaders.families.llamagen import (
    CaptionTransformer,
    ClassModel,
    ClassTransformer,
    TextModel,
)
from jacobi_ar.model_loaders.image_transformer import Prompt
from jacobi_ar.model_loaders.target import TransformerTarget
from jacobi_ar.model_loaders.transformer import TransformerConfig
from torch import Tensor

from .plain_transformer import file_names, grid_angles, plain_logits

GRID = TokenGrid(4, 4)
VOCABULARY, CLASSES = 20, 5
CAUSAL = torch.ones(16, 16, dtype=torch.bool).tril()


def config(kv_heads: int = 2) -> TransformerConfig:
    return TransformerConfig(dim=32, layers=2, heads=4, kv_heads=kv_heads, head_dim=8, ffn=48)


def randomised(network: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    draw = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        parameter.requires_grad_(False).normal_(0, 0.4, generator=draw)
    return network


def class_model(kv_heads: int = 2, dtype: torch.dtype = torch.float64) -> ClassModel:
    network = ClassTransformer(config(kv_heads), VOCABULARY, CLASSES, torch.nn, dtype=torch.float64)
    return ClassModel("tiny", randomised(network).to(dtype), dtype)


def caption_model() -> TextModel:
    network = CaptionTransformer(config(), VOCABULARY, 12, 10, torch.nn, dtype=torch.float64)
    return TextModel("tiny", randomised(network), torch.float64, None)


def plain(
    model: ClassModel, label: int, tokens: Tensor, visible: Tensor = CAUSAL, cells: Tensor | None = None
) -> Tensor:
    """Logits after the class and after each token, [1 + N, V]; `visible` [N, N] is among tokens."""
    count = len(tokens)
    cells = torch.arange(count) if cells is None else cells
    angles = grid_angles(4, 4, 8, 10000.0)[cells]
    nothing = torch.zeros(1, 4, dtype=torch.float64)  # the class is turned by cosine 0 and sine 0
    weights = file_names(model.transformer.state_dict())
    x = torch.cat([weights["class_embedding.weight"][None, label], weights["tok_embeddings.weight"][tokens]])
    mask = torch.zeros(1 + count, 1 + count, dtype=torch.bool)
    mask[:, 0] = True
    mask[1:, 1:] = visible[:count, :count]
    return plain_logits(
        weights, x, torch.cat([nothing, angles.cos()]), torch.cat([nothing, angles.sin()]), mask
    )


def guided(model: ClassModel, label: int, tokens: Tensor, guidance: float, **rest: Tensor) -> Tensor:
    conditional, unconditional = (plain(model, k, tokens, **rest) for k in (label, CLASSES))
    return unconditional + guidance * (conditional - unconditional)


def classes(model: ClassModel, *labels: int) -> list[Prompt]:
    return [model.encode_prompt(str(label)) for label in labels]


def some_tokens(images: int = 1, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (images, 16), generator=torch.Generator().manual_seed(seed))


def feed(target: TransformerTarget, tokens: Tensor, start: int, stop: int) -> Tensor:
    """Tokens [B, 16] start .. stop - 1 in raster order, each seeing what is before it."""
    slots = torch.arange(start, stop).expand(len(tokens), -1)
    visible = torch.arange(stop) <= slots[..., None]
    return target.forward(tokens[:, start:stop], slots, slots, visible)


@pytest.mark.parametrize("guidance", [1.0, 3.0, 0.0])
@pytest.mark.parametrize("windows", [[16], [1] * 16, [3, 5, 1, 7]])
def test_windows_give_what_one_pass_gives(windows: list[int], guidance: float) -> None:
    model, tokens = class_model(), some_tokens(2)
    target = model.target(GRID, guidance)
    rows, start = [target.prefill(classes(model, 1, 4), 16)[:, None]], 0
    for width in windows:
        rows.append(feed(target, tokens, start, start + width))
        start += width
    expected = torch.stack([guided(model, k, t, guidance) for k, t in zip((1, 4), tokens, strict=True)])
    torch.testing.assert_close(torch.cat(rows, dim=1), expected)


def test_rows_out_of_order_with_gaps() -> None:
    """The third row is fed before the second is known, and the fourth never sees the third."""
    model, tokens = class_model(), some_tokens()[0]
    cells = torch.tensor([0, 1, 2, 3, 8, 9, 4, 5, 12])
    visible = torch.ones(9, 9, dtype=torch.bool).tril()
    visible[8, 4:6] = False
    target = model.target(GRID, 2.0)
    target.prefill(classes(model, 2), 16)
    rows = []
    for part in (slice(0, 4), slice(4, 6), slice(6, 9)):
        seen = torch.zeros(1, len(cells[part]), 16, dtype=torch.bool)
        seen[0, :, cells] = visible[part]
        slots = cells[None, part]
        rows.append(target.forward(tokens[None, cells[part]], slots, slots, seen)[0])
    expected = guided(model, 2, tokens[cells], 2.0, visible=visible, cells=cells)[1:]
    torch.testing.assert_close(torch.cat(rows), expected)


def test_images_of_a_batch_are_at_different_places() -> None:
    model, tokens = class_model(), some_tokens(2)
    target = model.target(GRID, 2.0)
    target.prefill(classes(model, 0, 3), 16)
    feed(target, tokens, 0, 8)
    slots = torch.tensor([[2, 3, 4], [6, 7, 8]])
    visible = torch.arange(16) <= slots[..., None]
    got = target.forward(tokens.gather(1, slots), slots, slots, visible)
    for image, label in enumerate((0, 3)):
        expected = guided(model, label, tokens[image], 2.0)[1 + slots[image]]
        torch.testing.assert_close(got[image], expected)


def test_feeding_a_slot_again_overwrites_it_and_stale_slots_are_hidden() -> None:
    model, tokens, wrong = class_model(), some_tokens(), some_tokens(seed=1)
    target = model.target(GRID, 2.0)
    target.prefill(classes(model, 2), 16)
    feed(target, wrong, 0, 16)
    got = torch.cat([feed(target, tokens, 0, 5), feed(target, tokens, 5, 9)], dim=1)
    torch.testing.assert_close(got[0], guided(model, 2, tokens[0], 2.0)[1:10])


def test_move_takes_a_branch_into_the_stream() -> None:
    model, tokens = class_model(), some_tokens(2)
    target = model.target(GRID, 2.0)
    target.prefill(classes(model, 2, 3), 24)
    feed(target, tokens, 0, 6)
    scratch = torch.tensor([[16, 17], [18, 17]])
    positions = torch.tensor([[6, 7]]).expand(2, -1)
    visible = torch.zeros(2, 2, 24, dtype=torch.bool)
    visible[..., :6] = True
    for image in range(2):
        visible[image, 0, scratch[image, 0]] = True
        visible[image, 1, scratch[image]] = True
    target.forward(tokens[:, 6:8], positions, scratch, visible)
    target.move(scratch, positions)
    got = feed(target, tokens, 8, 10)
    expected = torch.stack([guided(model, k, t, 2.0)[9:11] for k, t in zip((2, 3), tokens, strict=True)])
    torch.testing.assert_close(got, expected)
    target.move(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[1, 2], [1, 2]]))  # overlapping
    assert torch.equal(target._cache.columns[:, :, :, 16], target._cache.columns[:, :, :, 17])


@pytest.mark.parametrize("guidance", [1.0, 2.0])
@pytest.mark.parametrize("kept", [[0, 2], [1], [0, 1, 2]])
def test_retained_images_go_on_as_before(kept: list[int], guidance: float) -> None:
    model, tokens = class_model(), some_tokens(3)
    target = model.target(GRID, guidance)
    target.prefill(classes(model, 0, 1, 2), 16)
    feed(target, tokens, 0, 6)
    target.retain(kept)
    got = feed(target, tokens[kept], 6, 16)
    expected = torch.stack([guided(model, k, tokens[k], guidance)[7:] for k in kept])
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("guidance", [1.0, 4.0])
def test_prompts_of_unequal_length_share_a_batch(guidance: float) -> None:
    model, tokens = caption_model(), some_tokens(3)
    draw = torch.Generator().manual_seed(5)
    prompts = [Prompt(model.family, "", {"features": torch.randn(n, 10, generator=draw)}) for n in (3, 12, 1)]

    def run(chosen: list[int]) -> Tensor:
        target = model.target(GRID, guidance)
        first = target.prefill([prompts[i] for i in chosen], 16)
        return torch.cat([first[:, None], feed(target, tokens[chosen], 0, 16)], dim=1)

    torch.testing.assert_close(run([0, 1, 2]), torch.cat([run([i]) for i in range(3)]))


def test_grouped_queries_equal_repeated_keys() -> None:
    grouped, whole = class_model(kv_heads=2), class_model(kv_heads=4)
    state = grouped.transformer.state_dict()
    for name in [name for name in state if name.endswith("wqkv.weight")]:
        q, k, v = state[name].split([32, 16, 16])
        repeated = [part.view(2, 8, 32).repeat_interleave(2, dim=0).flatten(0, 1) for part in (k, v)]
        state[name] = torch.cat([q, *repeated])
    whole.transformer.load_state_dict(state)
    tokens, logits = some_tokens(), []
    for model in (grouped, whole):
        target = model.target(GRID, 2.0)
        target.prefill(classes(model, 2), 16)
        logits.append(torch.cat([feed(target, tokens, 0, 7), feed(target, tokens, 7, 16)], dim=1))
    torch.testing.assert_close(*logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_lower_precision_stays_near(dtype: torch.dtype) -> None:
    exact, model, tokens = class_model(), class_model(dtype=dtype), some_tokens()
    target = model.target(GRID, 2.0)
    first = target.prefill(classes(model, 2), 16)
    got = torch.cat([first[:, None], feed(target, tokens, 0, 16)], dim=1)[0]
    assert got.dtype == torch.float32
    expected = guided(exact, 2, tokens[0], 2.0)
    error = (got - expected).abs().max() / expected.abs().max()
    assert error < {torch.float32: 1e-5, torch.bfloat16: 0.05, torch.float16: 0.005}[dtype]


@pytest.mark.parametrize("guidance", [1.0, 2.0])
def test_cache_bytes_are_those_of_the_cache(guidance: float) -> None:
    model = class_model()
    target = model.target(GRID, guidance)
    prompts = classes(model, 0, 1)
    target.prefill(prompts, 21)
    assert model.cache_bytes(prompts, GRID, guidance, 21) == target._cache.columns.nbytes


def test_an_offered_grid_or_a_sentence() -> None:
    model = class_model()
    assert model.grid(16, 16) == TokenGrid(16, 16)
    with pytest.raises(GridError, match=r"16 x 20 tokens; it makes 24 x 24, 16 x 16, 32 x 32"):
        model.grid(16, 20)


def test_a_prompt_of_another_family_is_refused() -> None:
    model = class_model()
    with pytest.raises(
        PromptError, match="for LlamaGen t2i, the model is LlamaGen c2i: connect this model to"
    ):
        model.target(GRID, 2.0).prefill([Prompt("LlamaGen t2i", "a cat")], 16)
