"""Caption cleaning as the captions of LlamaGen's (and DeepFloyd's, PixArt's) training data were cleaned.

A model trained on cleaned captions knows nothing else, so a prompt goes through the same steps: lower case;
no links, markup, @names, Chinese characters, file names, serial numbers or shop talk; plain quotes. The
official code also repairs wrongly decoded text, by a package that ComfyUI lacks; a typed prompt needs none.
"""

from __future__ import annotations

import html
import re
import unicodedata
from html.parser import HTMLParser
from urllib.parse import unquote_plus

FILES = "png|jpg|jpeg|bmp|webp|eps|pdf|apk|mp4"
Rule = tuple[re.Pattern[str], str]


def _rules(*pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in pairs)


LINKS = _rules(
    (r"<person>", "person"),  # how some data sets hide names
    (r"\b(?:https?|www):(?:/{1,3}|[a-z0-9%])", ""),
    (r"\b[a-z0-9.-]+\.(?:com|co|ru|net|org|edu|gov|it)[\w/-]*\b/?(?!@)", ""),
)
CHARACTERS = _rules(
    (r"@\w+\b", ""),
    (r"[\u31c0-\u9fff]+", ""),  # Chinese characters and what lies around them; kana stay
    (
        "[-\u058a\u05be\u1400\u1806\u2010-\u2015\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u301c\u3030\u30a0"
        "\ufe31\ufe32\ufe58\ufe63\uff0d]+",
        "-",
    ),
    ("[`\u00b4\u00ab\u00bb\u201c\u201d\u00a8]", '"'),
    ("[\u2018\u2019]", "'"),
    (r"&quot;?|&amp", ""),
)
NUMBERS = _rules(
    (r"\d{1,3}(?:\.\d{1,3}){3}", " "),  # addresses of machines
    (r"\d:\d\d\s+$", ""),  # times at the end
    (r"\\n", " "),  # a line end that was written out
    (r"#\d{1,3}\b|#\d{5,}\b", ""),
    (r"\b\d{6,}\b", ""),
    (rf"\S+\.(?:{FILES})", ""),
)
PUNCTUATION = _rules(
    (r"[\"']{2,}", '"'),
    (r"\.{2,}", " "),
    (r"[#\u00ae\u2022\u00a9\u2122&@\u00b7\u00ba\u00bd\u00be\u00bf\u00a1\u00a7~()\[\]{}|\\/*]+", " "),
    (r"\s+\.\s+", " "),
)
SERIALS_AND_SHOPS = _rules(
    (r"\b[a-zA-Z]{1,3}\d{3,15}\b", ""),
    (r"\b[a-zA-Z]+\d+[a-zA-Z]+\b", ""),
    (r"\b\d+[a-zA-Z]+\d+\b", ""),
    (r"(?:worldwide\s+)?(?:free\s+)?shipping", ""),
    (r"(?:free\s)?download(?:\sfree)?", ""),
    (r"\bclick\b\s(?:for|on)\s\w+", ""),
    (rf"\b(?:{FILES})(?:\simages?)?", ""),
    (r"\bpage\s+\d+\b", ""),
    (r"\b\d*(?:[a-zA-Z]+\d+){2}[a-zA-Z\d]*\b", " "),
    (r"\b\d+\.?\d*[x\u0445\u00d7]\d+\.?\d*\b", ""),  # sizes; the second x is the Cyrillic letter
)
SPACING = _rules(
    (r"\b\s+:\s+", ": "),
    (r"(\D[,./])\b", r"\1 "),
    (r"\s+", " "),
    (r"^[\"']([\w\W]+)[\"']$", r"\1"),  # quotes around the whole
    (r"^['_,\-:;]", ""),
    (r"['_,\-:+]$", ""),
    (r"^\.\S+$", ""),
)
CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\u206a-\u206f\ufeff\ufff9-\ufffc]")
WIDE = re.compile("[\u3000\uff01-\uffef\ufb00-\ufb06]")  # full-width forms and Latin ligatures


def clean_caption(text: str) -> str:
    """The caption as the text encoder saw its like in training: cleaned twice, as was done there."""
    return _clean(_clean(text))


def _clean(text: str) -> str:
    text = _apply(LINKS, unquote_plus(text).strip().lower())
    text = _apply(PUNCTUATION, _apply(NUMBERS, _apply(CHARACTERS, _without_markup(text))))
    if len(re.findall("[-_]", text)) > 3:  # words-joined-like-this
        text = re.sub("[-_]", " ", text)
    text = html.unescape(html.unescape(_plain_characters(text))).strip()
    return _apply(SPACING, _apply(SERIALS_AND_SHOPS, text)).strip()


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _plain_characters(text: str) -> str:
    """Composed accents, straight quotes, narrow letters, nothing invisible."""
    text = re.sub("[\u02bc\u2018-\u201b]", "'", re.sub("[\u201c-\u201f]", '"', text))
    text = WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return unicodedata.normalize("NFC", CONTROLS.sub("", text))


class _Text(HTMLParser):
    """Collects what a page shows."""

    HIDDEN = ("script", "style", "template")

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self.HIDDEN

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def _without_markup(text: str) -> str:
    parser = _Text()
    parser.feed(text)
    parser.close()
    return "".join(parser.pieces)
