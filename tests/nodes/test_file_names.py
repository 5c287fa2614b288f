"""What is saved lies below the output folder, and nothing is written over."""

from __future__ import annotations

from pathlib import Path

import pytest
from jacobi_ar.nodes.file_names import check_prefix, write_new


@pytest.mark.parametrize("prefix", ["JacobiAR", "tokens/JacobiAR", "a b/c.d", "%year%/x", "~x", "emoji ♥"])
def test_names_below_the_output_folder_pass(prefix: str) -> None:
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize(
    "prefix",
    [
        "../x", "a/../../x", "a/..", "..", "/etc/x", "\\x", "C:/x", "C:x", "c:\\x",
        "\\\\server\\share\\x", "a\\..\\..\\x",
        "", "  ", "a/", "a\\", "a\0b", "a\nb", "a|b", "a*", "x" * 201,
        "a:b", "con/x", "a/aux.txt/x", "NUL", "dir./x", "a /b", ".hid/x", "a/.x",
        "\u7ea2" * 67, "\ud83d", None, 3, {"a": 1},
    ],
)  # fmt: skip
def test_others_are_refused(prefix: object) -> None:
    with pytest.raises(ValueError, match="filename_prefix"):
        check_prefix(prefix)


def test_numbers_go_on_past_what_is_there(tmp_path: Path) -> None:
    def name(number: int) -> str:
        return f"x_{number}.bin"

    (tmp_path / "x_2.bin").write_bytes(b"precious")
    made = [write_new(tmp_path, name, 1, content).name for content in (b"a", b"b", b"c")]
    assert made == ["x_1.bin", "x_3.bin", "x_4.bin"]
    assert (tmp_path / "x_2.bin").read_bytes() == b"precious" and (tmp_path / "x_4.bin").read_bytes() == b"c"
