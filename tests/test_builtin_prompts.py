"""How the built-in model reads prompts as people write them."""

from __future__ import annotations

import json

import pytest
from jacobi_ar.model_loaders.families.builtin_names import ALIASES, Names
from jacobi_ar.model_loaders.families.builtin_prompt import Manner, read_prompt
from jacobi_ar.model_loaders.load import BUILTIN_MODEL
from jacobi_ar.tools.builtin_model.drawings import Drawing
from jacobi_ar.tools.builtin_model.selection import reading, vocabulary
from safetensors import safe_open

ABOUT = [
    Drawing("flat", ("dog",), (("hound", "dog"),)),
    Drawing("noto", ("red", "heart")),
    Drawing("flat", ("blue", "heart")),
    Drawing("flag", ("flag", "japan")),
    Drawing("flat", ("map", "japan")),
    Drawing("flat", ("hot", "beverage")),
]
WORDS = vocabulary(ABOUT)


@pytest.mark.parametrize(
    ("text", "names", "note"),
    [
        ("A photo of a dog!", "<any> dog", "left out, without a picture of their own: a, photo, of"),
        ("noto style puppies red heart", "<noto> red heart", "ignored: puppies"),
        ("puppy", "<any> dog", "read by the built-in model: puppy as dog"),
        ("two dogs", "<any> dog", "dogs as dog; two"),
        ("hound dog", "<any> hound dog", ""),
        ("flat red heart", "<flat> red heart", ""),
        ("flat hound, dog", "<flat> hound dog", ""),
        ("Heart, red.", "<any> red heart", ""),
        ("red haert, masterpiece, 4k", "<any> red heart", "haert as heart; ignored: masterpiece, 4k"),
        ("flag of Japan", "<flag> flag japan", "left out, without a picture of their own: of"),
        ("japan", "<any> flag japan", "read as flag japan"),
        ("beverage", "<any> hot beverage", "read as hot beverage"),
        ("heart", "<any> red heart", "read as red heart"),
        ("\u2764\ufe0f", "<any> red heart", "read as red heart"),
        ("blue", "<any> blue heart", "read as blue heart"),
        ("Japanese flag", "<any> flag japan", "read as flag japan"),
        ("flag dog", "<any> dog", "no flag is called dog"),
        ("haert", "<any> red heart", "haert as heart; read as red heart"),
        ("red heart and blue heart", "<any> red heart", "one drawing a picture: red heart, without blue"),
        ("blue heart, dog", "<any> blue heart", "one drawing a picture: blue heart, without dog"),
        ("mantel, dot", "<any>", "ignored: mantel, dot"),
        ("hot japan", "<any> hot japan", "no drawing is called hot japan; there are: flag japan, map japan"),
        ("coffee", "<any> hot beverage", "read as hot beverage"),
        ("<null> dog", "<any> dog", "ignored: null"),
        ("zeppelin", "<any>", "no word of the prompt is known"),
        ("", "<null>", "empty prompt"),
        ("\u05e9\u05dc\u05d5\u05dd", "<null>", "nothing of this text can be read"),
    ],
)
def test_prompts_as_people_write_them(text: str, names: str, note: str) -> None:
    manner = reading(WORDS, ABOUT)
    listed = Names(manner["names"], manner["other names"])
    known = Manner(manner["any"], manner["styles"], frozenset(manner["fillers"]), manner["synonyms"], listed)
    read = read_prompt(text, WORDS, known, 8)
    assert " ".join(read.names) == names
    for part in note.split("; "):
        assert part in "\n".join(read.notes)
    assert bool(note) == bool(read.notes)


def test_every_alias_asks_for_a_drawing_that_there_is() -> None:
    with safe_open(BUILTIN_MODEL, "pt") as file:
        said = json.loads(file.metadata()["prompts"])
    names = Names(said["names"], said["other names"])
    listed = [line for line in ALIASES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for line in listed:
        name, ways = line.split(": ")
        assert name in said["names"]
        for way in ways.split(", "):
            chosen = names.choose(way.split())
            assert (" ".join(chosen.words), chosen.note) == (name, f"read as {name}"), way
