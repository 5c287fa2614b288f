"""Caption features against a tiny random T5, and the ways in which a folder can be wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError, DependencyError, PromptError
from jacobi_ar.model_loaders.t5 import LENGTH, load_text_encoder

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = "<pad> </s> <unk> a cat on the red sofa with green eyes".split()


def write_encoder(folder: Path, whole: bool = False) -> torch.nn.Module:
    """A T5 in the Hugging Face layout: the encoder alone, or the whole model as flan-t5-xl is published."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(WORDS) + 4,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    kind = transformers.T5ForConditionalGeneration if whole else transformers.T5EncoderModel
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    words = tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=7)  # settings of the file's own, which must not matter
    tokenizer.save(str(folder / "tokenizer.json"))
    return model.get_encoder() if whole else model


@pytest.mark.parametrize("whole", [False, True], ids=["encoder", "whole model"])
def test_features_are_those_of_the_padded_encoder_moved_to_the_right(tmp_path: Path, whole: bool) -> None:
    reference = write_encoder(tmp_path, whole)
    encoder = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32)
    got = encoder.encode("A cat, on the red sofa")
    ids = [WORDS.index(word) for word in "a cat <unk> on the red sofa </s>".split()]
    n = len(ids)
    with torch.no_grad():
        expected = reference(
            input_ids=torch.tensor([ids + [0] * (LENGTH - n)]),
            attention_mask=torch.tensor([[1] * n + [0] * (LENGTH - n)]),
        ).last_hidden_state[0]
    assert got.features.shape == (LENGTH, 32) == (LENGTH, encoder.width)
    torch.testing.assert_close(got.features[LENGTH - n :], expected[:n], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(got.valid, got.features[LENGTH - n :], rtol=0, atol=0)
    assert not got.features[: LENGTH - n].any()
    assert got.mask.tolist() == [False] * (LENGTH - n) + [True] * n
    assert got.text == "a cat, on the red sofa"


def test_a_long_prompt_is_cut_to_119_tokens_and_the_end_token(tmp_path: Path) -> None:
    write_encoder(tmp_path)
    encoder = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32)
    long, exact = encoder.encode("cat " * 500), encoder.encode("cat " * 119)
    assert long.mask.all()
    torch.testing.assert_close(long.features, exact.features, rtol=0, atol=0)
    assert any("cut" in note for note in long.notes) and not any("cut" in note for note in exact.notes)
    assert encoder.encode("cat " * 100_000).mask.all()


def test_an_empty_prompt_is_the_end_token(tmp_path: Path) -> None:
    write_encoder(tmp_path)
    got = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32).encode("  ")
    assert got.mask.sum() == 1 and got.notes == ()


def test_what_the_encoder_does_not_read_is_said(tmp_path: Path) -> None:
    write_encoder(tmp_path)
    encoder = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32)
    with pytest.raises(PromptError, match="nothing is left"):
        encoder.encode("红色的猫")
    notes = encoder.encode("a cat http://example.com with wings").notes
    assert any('read as "a cat with wings"' in note for note in notes)
    assert any("1 parts of the prompt are unknown" in note for note in notes)


def test_other_types(tmp_path: Path) -> None:
    write_encoder(tmp_path)
    full = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32).encode("a red cat").features
    for dtype, tolerance in ((torch.bfloat16, 0.1), (torch.float16, 0.02)):
        encoder = load_text_encoder(tmp_path, device="cpu", dtype=dtype)
        got = encoder.encode("a red cat").features
        assert got.dtype == torch.float32
        assert (got - full).abs().max() < tolerance * full.abs().max()
        kept = {n for n, p in encoder.module.named_parameters() if p.dtype != dtype}
        assert kept == ({n for n in kept if n.endswith(".wo.weight")} if dtype == torch.float16 else set())


def test_the_table_is_held_once(tmp_path: Path) -> None:
    write_encoder(tmp_path)
    module = load_text_encoder(tmp_path, device="cpu", dtype=torch.float32).module
    assert module.encoder.get_input_embeddings().weight is module.shared.weight


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "no tokenizer file"),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no weight file"),
        (lambda folder: change(folder, model_type="llama"), "says 'llama'"),
        (lambda folder: change(folder, num_layers=3), "3 layers, the weights have 2"),
        (lambda folder: change(folder, d_ff=64), "another shape"),
        (lambda folder: change(folder, d_model="big"), "no usable d_model"),
        (lambda folder: change(folder, vocab_size=5), "do not belong together"),
    ],
)
def test_a_wrong_folder_is_one_sentence(tmp_path: Path, spoil, message: str) -> None:
    write_encoder(tmp_path)
    spoil(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        load_text_encoder(tmp_path, device="cpu", dtype=torch.float32)


def change(folder: Path, **values: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def test_missing_transformers_is_named_with_the_python_that_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(DependencyError) as caught:
        load_text_encoder(tmp_path, device="cpu", dtype=torch.float32)
    assert "transformers does not import" in str(caught.value) and sys.executable in str(caught.value)
