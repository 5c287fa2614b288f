"""Image tokenizers of Chameleon, Janus, Emu3 and Lumina-mGPT 2.0 against the official classes' outputs and
transformers' classes, alone and within a model's own files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.checkpoint import Checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.image_tokenizer import ImageTokenizer
from jacobi_ar.model_loaders.load_tokenizer import load_image_tokenizer
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from .transformers_classes import from_transformers, image_tokens

GOLDEN = Path(__file__).parent / "golden"
CLOSE = {"rtol": 1e-4, "atol": 2e-5}
Weights = dict[str, Tensor]


def golden(name: str) -> tuple[Weights, Weights]:
    """Weights, and what the official class computes."""
    weights = torch.load(next(GOLDEN.glob(f"{name}.*t")), weights_only=True)
    return weights.get("state_dict", weights.get("model", weights)), load_file(
        GOLDEN / f"{name}_expected.safetensors"
    )


def saved(path: Path, weights: Weights) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous().clone() for name, tensor in weights.items()}, path)
    return path


def load(path: Path) -> ImageTokenizer:
    return load_image_tokenizer(path, device="cpu")


def as_images(pixels: Tensor) -> Tensor:
    return (pixels.permute(0, 2, 3, 1) + 1) / 2


def randomise(module: nn.Module, seed: int) -> None:
    """Weights that make each part count, running statistics of batch norms included."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in module.state_dict().items():
        if not tensor.is_floating_point():
            continue
        noise = torch.randn(tensor.shape, generator=generator)
        fan = max(1, tensor[0].numel()) if tensor.ndim > 1 else 1
        if "running_var" in name:
            tensor.copy_(0.5 + noise.abs())
        elif tensor.ndim == 1:
            tensor.copy_(("norm" in name and name.endswith("weight")) + 0.3 * noise)
        else:
            tensor.copy_(noise if "embedding" in name else noise * fan**-0.5)


# ---- Chameleon ---------------------------------------------------------------------------------------------


def test_chameleon_equals_the_official_class() -> None:
    _, expected = golden("chameleon_vqgan_tiny")
    tokenizer = load(GOLDEN / "chameleon_vqgan_tiny.ckpt")
    assert (tokenizer.kind, tokenizer.factor, tokenizer.codebook.shape) == ("chameleon", 2, (96, 16))
    ids = expected["ids"].view(2, 4, 6)
    torch.testing.assert_close(tokenizer.decode_raw(ids), expected["decoded_raw"], **CLOSE)
    encoded = tokenizer.encode(as_images(expected["image_to_encode"]))
    assert torch.equal(encoded.flatten(1), expected["encoded_ids"])


def test_what_training_left_in_the_file_is_passed_over_but_nothing_of_the_network(tmp_path: Path) -> None:
    weights, expected = golden("chameleon_vqgan_tiny")
    more = {"loss.discriminator.main.0.weight": torch.ones(2), "ema_decoder.decay": torch.ones(1)}
    torch.save({"state_dict": weights | more, "epoch": 3}, tmp_path / "vqgan.ckpt")
    ids = expected["ids"].view(2, 4, 6)
    torch.testing.assert_close(
        load(tmp_path / "vqgan.ckpt").decode_raw(ids), expected["decoded_raw"], **CLOSE
    )
    more = {"decoder.up.0.attn.7.k.weight": torch.ones(2)}
    torch.save({"state_dict": weights | more}, tmp_path / "vqgan.ckpt")
    with pytest.raises(CheckpointError, match="not known: decoder.up.0.attn.7.k.weight"):
        load(tmp_path / "vqgan.ckpt")
    fewer = {name: tensor for name, tensor in weights.items() if name != "decoder.mid.attn_1.q.bias"}
    torch.save({"state_dict": fewer}, tmp_path / "vqgan.ckpt")
    with pytest.raises(CheckpointError, match="missing: decoder.mid.attn_1.q.bias"):
        load(tmp_path / "vqgan.ckpt")


def test_within_a_model_only_its_own_tensors_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout of Anole at Hugging Face: shards, an index, the network beside the language model."""
    weights, expected = golden("chameleon_vqgan_tiny")
    renamed = {f"model.vqmodel.{name}": tensor for name, tensor in weights.items()}
    renamed |= {"model.embed_tokens.weight": torch.ones(5, 4), "lm_head.weight": torch.ones(5, 4)}
    names = sorted(renamed)
    parts = {
        f"model-{i + 1:05}-of-00002.safetensors": names[i * len(names) // 2 : (i + 1) * len(names) // 2]
        for i in range(2)
    }
    for file, listed in parts.items():
        saved(tmp_path / file, {name: renamed[name] for name in listed})
    index = {"weight_map": {name: file for file, listed in parts.items() for name in listed}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    read = []
    real = Checkpoint.read
    monkeypatch.setattr(Checkpoint, "read", lambda self, name, *a: read.append(name) or real(self, name, *a))
    tokenizer = load(tmp_path)
    assert read and all(name.startswith("model.vqmodel.") for name in read)
    assert tokenizer.kind == "chameleon"
    ids = expected["ids"].view(2, 4, 6)
    torch.testing.assert_close(tokenizer.decode_raw(ids), expected["decoded_raw"], **CLOSE)


def test_chameleon_without_its_decoder_says_where_one_is(tmp_path: Path) -> None:
    weights, _ = golden("chameleon_vqgan_tiny")
    renamed = {f"model.vqmodel.{k}": v for k, v in weights.items() if not k.startswith("decoder.")}
    saved(tmp_path / "model.safetensors", renamed | {"lm_head.weight": torch.ones(2, 2)})
    with pytest.raises(CheckpointError, match=r"no decoder.*GAIR/Anole-7b-v0.1.*vqgan.ckpt"):
        load(tmp_path / "model.safetensors")


def test_chameleon_encodes_as_transformers_does() -> None:
    network, configuration = from_transformers(
        "ChameleonVQVAE", "ChameleonVQVAEConfig", module="transformers.models.chameleon.modeling_chameleon"
    )
    weights, _ = golden("chameleon_vqgan_tiny")
    config = configuration(
        embed_dim=16,
        num_embeddings=96,
        latent_channels=16,
        resolution=32,
        base_channels=32,
        channel_multiplier=[1, 2],
    )
    reference = network(config).eval()
    reference.load_state_dict({k: v for k, v in weights.items() if not k.startswith("decoder.")})
    images = torch.rand(2, 20, 12, 3, generator=torch.Generator().manual_seed(1))
    pixels = images.permute(0, 3, 1, 2) * 2 - 1
    with torch.no_grad():
        ids = image_tokens(reference.encode(pixels))
    tokenizer = load(GOLDEN / "chameleon_vqgan_tiny.ckpt")
    assert torch.equal(tokenizer.encode(images).flatten(), ids.flatten())


# ---- Janus -------------------------------------------------------------------------------------------------


def test_janus_is_llamagens_network_within_the_model(tmp_path: Path) -> None:
    weights, expected = golden("llamagen_vq_tiny")
    model = {f"gen_vision_model.{name}": tensor for name, tensor in weights.items()}
    model |= {"language_model.lm_head.weight": torch.ones(3, 2), "gen_embed.weight": torch.ones(128, 8)}
    torch.save(model, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text("{}")
    tokenizer = load(tmp_path)
    assert (tokenizer.kind, tokenizer.vocabulary) == ("janus", 128)
    ids = expected["ids"].view(2, 4, 6)
    torch.testing.assert_close(tokenizer.decode_raw(ids), expected["decoded_raw"], **CLOSE)
    encoded = tokenizer.encode(as_images(expected["image_to_encode"]))
    assert torch.equal(encoded.flatten(1), expected["encoded_ids"])


@pytest.mark.parametrize("levels", [[1, 2], [1, 1, 2]])
def test_janus_of_transformers(tmp_path: Path, levels: list[int]) -> None:
    network, configuration = from_transformers(
        "JanusVQVAE", "JanusVQVAEConfig", module="transformers.models.janus.modeling_janus"
    )
    config = configuration(
        embed_dim=8,
        num_embeddings=128,
        latent_channels=32,
        base_channels=32,
        channel_multiplier=levels,
        num_res_blocks=1,
        num_patches=6,
    )
    reference = network(config).eval()
    randomise(reference, 1)
    reference.quantize.quant_state_dims = [4, 6]
    weights = {f"model.vqmodel.{name}": tensor for name, tensor in reference.state_dict().items()}
    tokenizer = load(saved(tmp_path / "model.safetensors", weights | {"lm_head.weight": torch.ones(2, 2)}))
    assert tokenizer.kind == "janus"
    ids = torch.randint(128, (2, 4, 6), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        pixels = reference.decode(ids.flatten(1))
    torch.testing.assert_close(tokenizer.decode_raw(ids), pixels, **CLOSE)
    # Its own encoder is LlamaGen's, features normalised, as in training; transformers leaves that out.
    images = torch.rand(1, 8, 16, 3, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        features = reference.quant_conv(reference.encoder(images.permute(0, 3, 1, 2) * 2 - 1))
        codebook = nn.functional.normalize(reference.quantize.embedding.weight, dim=1)
        similar = torch.einsum("bchw,vc->bhwv", features, codebook)
    assert torch.equal(tokenizer.encode(images), similar.argmax(-1))


# ---- MoVQ --------------------------------------------------------------------------------------------------


def test_movq_equals_the_official_class(tmp_path: Path) -> None:
    weights, expected = golden("movqgan_decoder_tiny")
    tokenizer = load(GOLDEN / "movqgan_decoder_tiny.ckpt")
    assert (tokenizer.kind, tokenizer.factor, tokenizer.codebook.shape) == ("movq-lumina2", 2, (96, 4))
    ids = expected["ids"].view(2, 4, 6)
    torch.testing.assert_close(tokenizer.decode_raw(ids), expected["decoded_raw"], **CLOSE)
    assert not tokenizer.can_encode
    with pytest.raises(GridError, match="no encoder"):
        tokenizer.encode(torch.zeros(1, 8, 8, 3))


@pytest.fixture(scope="module")
def emu3() -> nn.Module:
    return emu3_network()


def emu3_network(codes: int = 96) -> nn.Module:
    network, configuration = from_transformers("Emu3VQVAE", "Emu3VQVAEConfig")
    config = configuration(
        codebook_size=codes,
        base_channels=32,
        channel_multiplier=[1, 1, 2],
        num_res_blocks=2,
        attn_resolutions=[2],
        hidden_size=64,
    )
    reference = network(config).eval()
    randomise(reference, 3)
    return reference


def original_emu3_name(name: str) -> str:
    """transformers' name -> the original one."""
    for theirs, original in (
        (r"(up|down)_block\.\1\.", r"\1."),
        (r"middle_block\.attn_norm\.", "mid.attn_1.norm."),
        (r"middle_block\.", "mid."),
        (r"attn_norms\.(\d)\.", r"attn.\1.norm."),
        (r"\.([qkv])_proj\.", r".\1."),
        (r"\.out_proj\.", ".proj_out."),
    ):
        name = re.sub(theirs, original, name)
    return name


def emu3_file(folder: Path, reference: nn.Module, layout: str) -> Path:
    weights = dict(reference.state_dict())
    if layout == "original":
        weights = {
            original_emu3_name(name): tensor[:, :, None, None] if "_proj.weight" in name else tensor
            for name, tensor in weights.items()
        }
        assert (
            "decoder.up.2.attn.1.norm.conv_y.weight" in weights
            and weights["encoder.mid.attn_1.q.weight"].ndim == 4
        )
    prefix = {"transformers": "model.vqmodel.", "older transformers": "vqmodel."}.get(layout, "")
    weights = {prefix + name: tensor for name, tensor in weights.items()}
    if prefix:
        weights["lm_head.weight"] = torch.ones(2, 2)
    return saved(folder / "model.safetensors", weights)


@pytest.mark.parametrize("layout", ["alone", "original", "transformers", "older transformers"])
def test_emu3_equals_transformers(tmp_path: Path, emu3: nn.Module, layout: str) -> None:
    tokenizer = load(emu3_file(tmp_path, emu3, layout))
    assert (tokenizer.kind, tokenizer.factor, tokenizer.codebook.shape) == ("movq-emu3", 4, (96, 4))
    ids = torch.randint(96, (2, 3, 5), generator=torch.Generator().manual_seed(4))
    images = torch.rand(2, 20, 12, 3, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        pixels = emu3.decode(ids)
        sizes = torch.tensor([[20, 12]] * 2)
        encoded = image_tokens(emu3.encode(images.permute(0, 3, 1, 2) * 2 - 1, sizes))
    torch.testing.assert_close(tokenizer.decode_raw(ids), pixels, **CLOSE)
    assert torch.equal(tokenizer.encode(images), torch.stack(list(encoded)))


def test_lumina2_with_its_encoder(tmp_path: Path, emu3: nn.Module) -> None:
    """The same network without the parts over time: a file with both halves encodes and decodes."""
    weights = torch.load(emu3_file_original(tmp_path, emu3), weights_only=True)
    tokenizer = load(tmp_path / "movq.ckpt")
    assert tokenizer.kind == "movq-lumina2" and tokenizer.can_encode
    images = torch.rand(1, 8, 12, 3, generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        encoder = emu3.encoder
        x = encoder.middle_block(encoder.down_block(encoder.conv_in(images.permute(0, 3, 1, 2) * 2 - 1)))
        x = encoder.conv_out(nn.functional.silu(encoder.norm_out(x)))
        x = nn.functional.conv2d(x, weights["quant_conv.weight"], weights["quant_conv.bias"])
        distance = torch.cdist(x[0].flatten(1).T, weights["quantize.embedding.weight"])
    assert torch.equal(tokenizer.encode(images).flatten(), distance.argmin(1))


def emu3_file_original(folder: Path, reference: nn.Module) -> Path:
    """A bare state dict, with the averages of training beside the weights."""
    weights = load_file(emu3_file(folder / "emu3", reference, "original"))
    kept = {k: v for k, v in weights.items() if ".time_" not in k}
    for name in ("quant_conv", "post_quant_conv"):
        kept[f"{name}.weight"] = kept.pop(f"{name}.conv.weight")[:, :, 2]
        kept[f"{name}.bias"] = kept.pop(f"{name}.conv.bias")
    kept["ema_encoder.conv_inweight"] = torch.ones(1)
    torch.save(kept, folder / "movq.ckpt")
    return folder / "movq.ckpt"


# ---- less memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chameleon_vqgan_tiny", "llamagen_vq_tiny", "movqgan_decoder_tiny", "emu3"])
@pytest.mark.parametrize("numbers", [1, 1000, 5000, 10**9])
def test_strips_give_the_same(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, numbers: int
) -> None:
    if name == "emu3":
        tokenizer = load(emu3_file(tmp_path, request.getfixturevalue("emu3"), "original"))
    else:
        tokenizer = load(next(GOLDEN.glob(f"{name}.*t")))
    network, draw = tokenizer.module, torch.Generator().manual_seed(7)
    codes = tokenizer.codebook[torch.randint(96, (1, 5, 4), generator=draw)].permute(0, 3, 1, 2)
    pixels = torch.rand(1, 3, 20, 12, generator=draw) * 2 - 1
    # All are of the order of 1. A seam, or a norm by the strip, is wrong in the first decimals.
    close = {"rtol": 1e-4, "atol": 1e-5}
    with torch.no_grad():
        strips, whole = network.decode_in_strips(codes, numbers), network.decode_codes(codes)
        torch.testing.assert_close(strips, whole, **close)
        if tokenizer.can_encode:
            strips, whole = network.encode_in_strips(pixels, numbers), network.encode_pixels(pixels)
            torch.testing.assert_close(strips, whole, **close)


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA error"),
        RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_running_out_of_memory_falls_back_to_strips(
    error: RuntimeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load(GOLDEN / "chameleon_vqgan_tiny.ckpt")
    ids = torch.randint(96, (3, 4, 6), generator=torch.Generator().manual_seed(8))
    whole = tokenizer.decode_raw(ids)
    calls = []

    def no_memory(codes: Tensor) -> Tensor:
        calls.append(1)
        raise error

    monkeypatch.setattr(tokenizer.module, "decode_codes", no_memory)
    torch.testing.assert_close(tokenizer.decode_raw(ids), whole, rtol=1e-4, atol=1e-5)
    assert len(calls) == 1  # the later pictures of the batch do not try again
    torch.testing.assert_close(tokenizer.decode_raw(ids, strips=True), whole, rtol=1e-4, atol=1e-5)
    assert len(calls) == 1
    pictures = (whole.permute(0, 2, 3, 1).clamp(-1, 1) + 1) / 2
    tokens = tokenizer.encode(pictures)
    monkeypatch.setattr(tokenizer.module, "encode_pixels", no_memory)
    assert torch.equal(tokenizer.encode(pictures), tokens) and len(calls) == 2


def test_other_errors_are_not_taken_for_want_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load(GOLDEN / "chameleon_vqgan_tiny.ckpt")

    def broken(codes: Tensor) -> Tensor:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(tokenizer.module, "decode_codes", broken)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        tokenizer.decode_raw(torch.zeros(1, 2, 2, dtype=torch.long))
