"""Where a word that its line does not hold may break on paper; what is copied from the PDF has no trace of it."""

from __future__ import annotations

import re

_BREAK = "\u200b"
# Of a script that breaks only at spaces; in the others every letter is a place to break.
_WORD = re.compile(r"[^\s\u200b\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]{17,}")
_BETWEEN = re.compile(r"(?<=[_,({\[|/:.])(?=\w)")
_ENDLESS = 300
_PIECE = 12


def breakable(text: str) -> str:
    """The text with places to break in its long words: between the parts of a name, a query or an address.

    A word without parts that no line holds (base64, a key held down) gets one every dozen characters. Without them the
    typesetter tries every length of the word: 8,000 letters take 2.4 s, with them 0.1 s (measured 2026-11-30), and a
    pasted file would keep everybody's reports waiting.
    """
    return _WORD.sub(lambda match: _broken(match[0]), text)


def _broken(word: str) -> str:
    if len(word) < _ENDLESS:
        return _BETWEEN.sub(_BREAK, word)
    return _BREAK.join(word[place : place + _PIECE] for place in range(0, len(word), _PIECE))
