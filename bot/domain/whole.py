"""Whole numbers in text from outside."""

from __future__ import annotations


def whole(text: str, *, digits: int = 9) -> int | None:
    """The whole number that `text` writes in at most so many ASCII digits; None for anything else.

    `str.isdigit` and `str.isdecimal` both say yes to texts that `int` refuses, "²" and one of 5,000 digits for two.

    >>> whole("042"), whole("²"), whole("-1"), whole(""), whole("1234", digits=3)
    (42, None, None, None, None)
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if is_number else None
