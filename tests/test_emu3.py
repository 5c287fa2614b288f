"""Emu3 in all published layouts against transformers' class (small random weights), and its text tokenizer
against tiktoken."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.checkpoint import Checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.families.emu3_tokenizer import SPECIAL, WORDS, tokenizer_json
from jacobi_ar.model_loaders.load import load_image_model
from jacobi_ar.model_loaders.load_tokenizer import load_image_tokenizer
from jacobi_ar.model_loaders.text_tokenizer import TextTokenizer
from jacobi_ar.model_loaders.token_prompts import TokenPromptModel
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor

from .reference import randomised
from .tiny_tokenizer import write_tokenizer
from .token_prompt_check import assert_same_logits, stream_logits
from .transformers_classes import from_transformers

if TYPE_CHECKING:
    from transformers import Emu3ForConditionalGeneration

CODES, FIRST, TOKENS = 64, 200, 400  # codebook, id of code 0, rows of the table
TEXT = "a cat masterpiece, film grained, best quality. red lowres, bad anatomy, hands, text, error, missing "
TEXT += "fingers, extra digit, fewer digits, cropped, worst quality, low normal jpeg artifacts, signature, "
TEXT += "watermark, username, blurry. 4*4 4*6"
WORD_IDS = {word: 10 + i for i, word in enumerate(dict.fromkeys(TEXT.split()))}
NAMES = {"<|extra_203|>": 100, "<|extra_200|>": 101, "<|image start|>": 102, "<|image token|>": 103}
NAMES |= {f"<|visual token {code:06d}|>": FIRST + code for code in range(CODES)}
GRID = TokenGrid(4, 4, (101,))
OLDER = {
    "model.text_model.": "text_model.model.",
    "lm_head.": "text_model.lm_head.",
    "model.vqmodel.": "vqmodel.",
}
NEGATIVE = (
    "lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer digits, cropped, worst "
    "quality, low quality, normal quality, jpeg artifacts, signature, watermark, username, blurry."
)


@pytest.fixture(scope="module")
def reference() -> Emu3ForConditionalGeneration:
    text = {
        "vocab_size": TOKENS,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-4,
        "rope_theta": 5000.0,
        "pad_token_id": 1,
        "bos_token_id": 100,
        "eos_token_id": 2,
    }
    vq = {
        "codebook_size": CODES,
        "base_channels": 32,
        "channel_multiplier": [1, 1],
        "num_res_blocks": 1,
        "attn_resolutions": [1],
        "hidden_size": 32,
    }
    names = NAMES | {"<image>": 5}
    configuration, model = from_transformers("Emu3Config", "Emu3ForConditionalGeneration")
    config = configuration(text_config=text, vq_config=vq, vocabulary_map=names)
    return randomised(model(config))


def renamed(weights: dict[str, Tensor], names: dict[str, str]) -> dict[str, Tensor]:
    """The weights by other names, which begin otherwise."""
    for one, other in names.items():
        weights = {re.sub(f"^{re.escape(one)}", other, name): tensor for name, tensor in weights.items()}
    return weights


def save(reference: Emu3ForConditionalGeneration, folder: Path, layout: str = "hugging face") -> Path:
    """The reference as a checkpoint folder in one of the published forms."""
    weights = {name: tensor.contiguous().clone() for name, tensor in reference.state_dict().items()}
    weights = renamed(weights, {old: new for new, old in OLDER.items()})  # transformers below 4.52
    config = json.loads(reference.config.to_json_string())
    if layout == "older hugging face":
        weights = renamed(weights, OLDER)
    elif layout == "original":
        weights = {
            name.replace("model.text_model.", "model."): tensor
            for name, tensor in weights.items()
            if "vqmodel" not in name
        }
        config = {"model_type": "Emu3", **config["text_config"], "image_area": 518400}
        config["rope_theta"] = config.pop("rope_parameters", config)["rope_theta"]
        config["model_type"] = "Emu3"
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder / "tokenizer.json", WORD_IDS, NAMES, TOKENS)
    save_file(weights, folder / "model.safetensors")
    return folder


def load(path: Path) -> TokenPromptModel:
    return load_image_model(path, device="cpu", dtype=torch.float32)


def words(text: str) -> list[int]:
    return [WORD_IDS[word] for word in text.split()]


@pytest.mark.parametrize("layout", ["hugging face", "older hugging face", "original"])
def test_logits_are_those_of_transformers(
    layout: str, reference: Emu3ForConditionalGeneration, tmp_path: Path
) -> None:
    model = load(save(reference, tmp_path, layout))
    assert (model.family, model.tokenizer_kind, model.vocabulary) == ("Emu3", "movq-emu3", CODES)
    text = getattr(reference, "model", reference).text_model  # the whole model, in transformers below 4.52
    head = getattr(reference, "lm_head", None) or text.lm_head
    logits = stream_logits(getattr(text, "model", text), head.weight[FIRST : FIRST + CODES], FIRST)
    assert_same_logits(model, GRID, ["a red cat", "a cat", ""], logits, 3.0)


def test_prompts_say_rows_before_columns_and_guidance_lists_faults(
    reference: Emu3ForConditionalGeneration, tmp_path: Path
) -> None:
    model = load(save(reference, tmp_path))
    prompts = [model.encode_prompt("a red cat")]
    for grid in (GRID, TokenGrid(4, 6, (101,))):
        size = WORD_IDS[f"4*{grid.cols}"]
        conditional, unconditional = model.transformer.prompt_ids(prompts, grid, True)
        praised = words("a red cat masterpiece, film grained, best quality.")
        assert conditional == [100, *praised, 102, size, 103]
        assert unconditional == [100, *words(NEGATIVE), 102, size, 103]


def test_what_the_model_offers(reference: Emu3ForConditionalGeneration, tmp_path: Path) -> None:
    model = load(save(reference, tmp_path))
    assert model.name == "Emu3 (2 layers of 48)"
    assert {g.row_end for g in model.grids} == {(101,)}
    shapes = [(g.rows, g.cols) for g in model.grids]
    large = [(90, 90), (68, 120), (120, 68), (78, 104), (104, 78), (73, 110), (110, 73)]
    assert shapes[:7] == large and shapes[7] == (64, 64) and len(shapes) == 14
    defaults = model.defaults
    assert (defaults.guidance, defaults.top_k, defaults.temperature, defaults.top_p) == (3.0, 2048, 1.0, 1.0)
    config = json.loads((tmp_path / "config.json").read_text()) | {"image_area": 262144}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert [(g.rows, g.cols) for g in load(tmp_path).grids][:1] == [(64, 64)]


def test_its_folder_holds_the_image_tokenizer_too(
    reference: Emu3ForConditionalGeneration, tmp_path: Path
) -> None:
    tokenizer = load_image_tokenizer(save(reference, tmp_path), device="cpu")
    assert (tokenizer.kind, tokenizer.vocabulary) == ("movq-emu3", CODES)


def test_only_what_is_needed_is_read(
    reference: Emu3ForConditionalGeneration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read, asked = save(reference, tmp_path), Checkpoint.read, {}

    def noted(self: Checkpoint, name: str, rows: tuple[int, int] | None = None) -> Tensor:
        asked[name] = rows
        return read(self, name, rows)

    monkeypatch.setattr(Checkpoint, "read", noted)
    load(folder)
    assert asked.pop("lm_head.weight") == (FIRST, FIRST + CODES)
    assert set(asked.values()) == {None} and not [name for name in asked if "vqmodel" in name]


def test_tokenizer_files_that_are_missing(reference: Emu3ForConditionalGeneration, tmp_path: Path) -> None:
    folder = save(reference, tmp_path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer.json in .*https://huggingface.co/BAAI/Emu3-Gen"):
        load(folder)
    (folder / "emu3.tiktoken").write_text("IQ== 0\n")
    with pytest.raises(CheckpointError, match=r"no emu3_vision_tokens.txt beside it.*huggingface.co/BAAI"):
        load(folder)
    (folder / "emu3_vision_tokens.txt").write_text("<|image token|>\n")
    with pytest.raises(CheckpointError, match=r"emu3.tiktoken.*cut off: no token for byte 0"):
        load(folder)
    (folder / "emu3.tiktoken").write_text("???\n")
    with pytest.raises(CheckpointError, match=r"emu3.tiktoken.*damaged"):
        load(folder)


# ---- the original tokenizer files --------------------------------------------------------------------------

SAMPLES = [
    "A portrait of a young girl. She'll say: I'VE GOT 1234 cats!!  \n\n two  spaces\tand tabs   ",
    "夜の東京タワー、雨上がりの街。 ソフトフォーカス",
    "Der Fuß des Mädchens; l'été à l'œuvre, naïve façade — “quoted” … 25°C",
    "Привет, мир! Ещё раз: ёлка. Γειά σου Κόσμε",
    "مرحبا بالعالم שלום עולם नमस्ते दुनिया ไทยภาษา 한국어 텍스트",
    "👩‍👩‍👧‍👦🚀 emoji 🇯🇵 e\u0301 (decomposed) \u212b \ufb01",
    "def f(x):\r\n    return x**2 # comment\r\n\r\n\n   ",
    "<|image start|>90*90<|image token|> between <|extra_203|>",
    "",
    " ",
]
VISION = ["<|image token|>", "<|image start|>", "<|image end|>"]
VISION += [f"<|visual token {code:06d}|>" for code in range(32768)]


def trained_ranks(size: int) -> dict[bytes, int]:
    """Ranks as a training gives them: bytes first, then merges in their order."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SAMPLES * 3, trainer)
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printable]
    bytes_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    return {bytes(bytes_of[c] for c in token): rank for token, rank in vocabulary.items()}


def random_ranks(draw: random.Random) -> dict[bytes, int]:
    """A vocabulary of many overlapping tokens in an order that no training would give."""
    tokens = [bytes([byte]) for byte in range(256)]
    known = set(tokens)
    while len(tokens) < 700:
        token = draw.choice(tokens[97:123] + tokens[256:]) + draw.choice(tokens[97:123] + tokens[256:])
        if len(token) <= 8 and token not in known:
            known.add(token)
            tokens.append(token)
    return {token: rank for rank, token in enumerate(tokens)}


def as_file(ranks: dict[bytes, int]) -> str:
    return "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items())


def random_text(draw: random.Random) -> str:
    alphabets = [
        "abc xyz'stREm ",
        "0123 ,.!?;-\n\r\t",
        "ßéñøаяΩ",
        "日本語漢字ー。",
        "한국ไท",
        "😀👍🏽\u200d",
        "e\u0301\u00a0\u3000",
    ]
    parts = ("".join(draw.choices(draw.choice(alphabets), k=draw.randint(1, 12))) for _ in range(12))
    return "".join(parts)


@pytest.mark.parametrize("kind", ["trained", "random"])
def test_the_original_tokenizer_files_give_tiktokens_ids(kind: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    unicodedata = pytest.importorskip("unicodedata")
    draw = random.Random(0)
    ranks = trained_ranks(900) if kind == "trained" else random_ranks(draw)
    special = (*SPECIAL, *VISION[:10])  # all of them take tiktoken minutes
    reference = tiktoken.Encoding(
        "Emu3",
        pat_str=WORDS,
        mergeable_ranks=ranks,
        special_tokens={name: 151643 + i for i, name in enumerate(special)},
    )
    ours = TextTokenizer(tokenizer_json(as_file(ranks), "\n".join(VISION) + "\n", "a file"), 184622, "a file")
    texts = [*SAMPLES, *(random_text(draw) for _ in range(400))]
    texts += ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=40)) for _ in range(400)]
    for text in texts:
        expected = reference.encode(unicodedata.normalize("NFC", text), allowed_special="all")
        assert ours.encode(text) == expected, text
    assert ours.codes(lambda code: f"<|visual token {code:06d}|>") == (151854, 184622)
    named = {"<|extra_203|>": 151849, "<|extra_200|>": 151846, "<|image start|>": 151852}
    named |= {"<|image token|>": 151851, "<|image end|>": 151853, "<|extra_204|>": 151850}
    assert {name: ours.id_of(name) for name in named} == named
