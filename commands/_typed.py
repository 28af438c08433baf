"""Characters as people really send them: phones, word processors, Chinese input methods, text copied from a page."""

from __future__ import annotations

import re
import unicodedata

# Marks that are drawn as nothing and arrive with copied text. The joiners of emoji and of Indic scripts stay.
_INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_ODD_SPACES = re.compile(r"[^\S\n ]")
_SPACES = re.compile(r"\s+")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\uff0d\ufe58\ufe63]")
# Every mark that a keyboard may put for a straight quotation mark.
DOUBLE = '"“”„‟＂'
SINGLE = "'‘’‚‛＇"
_PAIRS = {"「": "」", "『": "』", "«": "»", "‹": "›"}
_APOSTROPHE = re.compile(rf"(?<=\w)[{SINGLE}](?=\w)")
_FENCED = re.compile(r"^(`{1,3})(?!`)(.+?)(?<!`)\1$", re.DOTALL)
_STRAIGHT = str.maketrans({**dict.fromkeys(DOUBLE, '"'), **dict.fromkeys(SINGLE, "'")})
_STRING = re.compile(r'("(?:[^"\\]|\\.)*"?|\'(?:[^\'\\]|\\.)*\'?)')


def cleaned(text: str) -> str:
    """The text without invisible marks, with plain spaces; its lines stay."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")
    return _ODD_SPACES.sub(" ", _INVISIBLE.sub("", lines)).strip()


def plain_spaces(text: str) -> str:
    """One plain space for every run of white space, ideographic and non-breaking ones included."""
    return _SPACES.sub(" ", cleaned(text)).strip()


def narrow(text: str) -> str:
    """Names, numbers and times as a keyboard in its plain state writes them: half width, straight dashes.

    >>> narrow("ＳＥＶ２ gpu‑1 20：05")
    'SEV2 gpu-1 20:05'
    """
    return _DASHES.sub("-", unicodedata.normalize("NFKC", _DASHES.sub("-", text)))


def unquoted(text: str) -> str:
    """The text without the pair of quotation marks that encloses all of it; others stay."""
    if len(text) < 2:
        return text
    opening, inner, closing = text[0], text[1:-1], text[-1]
    if opening in DOUBLE:
        encloses = closing in DOUBLE and not any(mark in inner for mark in DOUBLE)
    elif opening in SINGLE:
        bare = _APOSTROPHE.sub("", inner)
        encloses = closing in SINGLE and not any(mark in bare for mark in SINGLE)
    else:
        encloses = closing == _PAIRS.get(opening) and not {opening, closing} & set(inner)
    return inner.strip() if encloses else text


def bare(text: str) -> str:
    """The text without the code marks that enclose all of it: people format names and queries as code."""
    found = _FENCED.match(text.strip())
    return found.group(2).strip() if found and found.group(1) not in found.group(2) else text


def value_end(text: str) -> int:
    """Where the quoted value ends that `text` begins with, behind its closing mark; 0 where it begins with none."""
    if not text:
        return 0
    marks = (
        DOUBLE if text[0] in DOUBLE else SINGLE if text[0] in SINGLE else _PAIRS.get(text[0], "")
    )
    ends = [at for mark in marks if (at := text.find(mark, 1)) > 0]
    return min(ends) + 1 if ends else 0


def query(text: str) -> str:
    """A query with the marks that its language knows; what stands in strings stays as it is.

    >>> query("rate（x{job=“a，b”}［5m］） ＞ 0.5")
    'rate(x{job="a，b"}[5m]) > 0.5'
    """
    straight = unquoted(bare(text.strip())).translate(_STRAIGHT)
    parts = _STRING.split(straight)
    return "".join(part if place % 2 else narrow(part) for place, part in enumerate(parts)).strip()
