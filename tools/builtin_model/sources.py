"""Where the drawings come from: npm packages under permissive licences, fetched by name, never committed."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..problem import Problem

# No share-alike and no non-commercial licences: the weights travel under the licence of this package.
ALLOWED = {
    "MIT": "https://spdx.org/licenses/MIT.html",
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "OFL-1.1": "https://openfontlicense.org",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
}


@dataclass(frozen=True)
class Source:
    """One package. `style` is the word that asks for its drawings; `author` and `licence` go on the card."""

    style: str
    package: str
    version: str
    drawings: str
    author: str
    licence: str


SOURCES = (
    Source(
        "flat",
        "@iconify-json/fluent-emoji-flat",
        "1.2.6",
        "Fluent Emoji",
        "Microsoft Corporation",
        "MIT",
    ),
    Source("noto", "@iconify-json/noto", "1.2.9", "Noto Emoji", "Google Inc", "Apache-2.0"),
    Source(
        "twemoji",
        "@iconify-json/twemoji",
        "1.2.5",
        "Twemoji",
        "Twitter, Inc and other contributors",
        "CC-BY-4.0",
    ),
    Source("flag", "flag-icons", "7.5.0", "flag-icons", "Panayiotis Lipiridis", "MIT"),
)


@dataclass(frozen=True)
class Icon:
    """One drawing as its package has it: `key` such as `red-heart`, other keys for the same, SVG text."""

    key: str
    others: tuple[str, ...]
    svg: str


def fetch(source: Source, folder: Path) -> Path:
    """The package's archive in `folder`, from npm's own configured registry if it is not there yet."""
    name = f"{source.package.removeprefix('@').replace('/', '-')}-{source.version}.tgz"
    path = folder / name
    if path.exists():
        return path
    npm = shutil.which("npm")
    if npm is None:
        raise Problem("npm is not installed", f"install Node.js, or put {name} into {folder} by hand")
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "part"  # npm writes in place: a stopped download must not look complete
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    asked = f"{source.package}@{source.version}"
    done = subprocess.run(
        [npm, "pack", "--silent", "--pack-destination", str(part), asked], capture_output=True, text=True
    )
    if done.returncode or not (part / name).exists():
        reason = done.stderr.strip() or done.stdout.strip()
        raise Problem(f"npm could not fetch {asked}: {reason}", "check the connection and npm's registry")
    (part / name).replace(path)
    part.rmdir()
    return path


def icons(source: Source, archive: Path) -> Iterator[Icon]:
    """All drawings of a package, in the order of their keys.

    Raises `Problem` where the package names another licence than the table does.
    """
    with tarfile.open(archive) as tar:
        members = {member.name.removeprefix("package/"): member for member in tar.getmembers()}

        def read(name: str) -> str:
            file = tar.extractfile(members[name])
            assert file is not None, name
            return file.read().decode("utf-8")

        about = json.loads(read("info.json" if "info.json" in members else "package.json"))["license"]
        licence = about["spdx"] if isinstance(about, dict) else about
        if licence != source.licence or licence not in ALLOWED:
            raise Problem(
                f"{source.package} says its licence is {licence}, expected {source.licence}",
                "read the licence before training on these drawings",
            )
        if source.style == "flag":
            for country in sorted(json.loads(read("country.json")), key=lambda country: country["code"]):
                yield Icon(f"flag-{country['name']}", (), read(country["flag_4x3"]))
        else:
            yield from _iconify(json.loads(read("icons.json")))


def _iconify(collection: dict[str, Any]) -> Iterator[Icon]:
    """Drawings of an iconify collection; aliases are other keys of their parent, mirrored ones are left
    out."""
    drawn, others = collection["icons"], {}
    for alias, about in collection.get("aliases", {}).items():
        if set(about) == {"parent"}:
            others.setdefault(about["parent"], []).append(alias)
    for key in sorted(drawn):
        icon = drawn[key]
        if icon.get("hidden"):
            continue
        left, top = icon.get("left", 0), icon.get("top", 0)
        width, height = (icon.get(side, collection.get(side, 16)) for side in ("width", "height"))
        yield Icon(
            key,
            tuple(sorted(others.get(key, ()))),
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{left} {top} {width} {height}">{icon["body"]}</svg>',
        )
