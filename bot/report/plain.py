"""Makes every character of a text visible, and nothing in it act."""

from __future__ import annotations

import re

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def visible(text: str) -> str:
    """`text` with one kind of line break, and with the characters that hide or turn text written out.

    A byte order mark or a change of writing direction becomes `<U+FEFF>`: it neither disappears nor acts. Zero-width
    joiners inside emoji are written out too; a report prefers that to an invisible difference.
    """
    if text.isprintable():
        return text
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", _BREAKS.sub("\n", text))


def harmless_cell(text: str) -> str:
    """A CSV cell that a spreadsheet reads as text: one that begins like a formula gets an apostrophe in front.

    A plain negative number stays a number. Source: OWASP, CSV Injection; a Chinese or Japanese spreadsheet reads the
    wide forms of the four signs as well.

    >>> harmless_cell("=1+1"), harmless_cell("-3.5")
    ("'=1+1", '-3.5')
    """
    stripped = text.lstrip()
    if stripped.startswith(_FORMULA) and not _is_number(stripped):
        return f"'{text}"
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) else text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text) is not None
