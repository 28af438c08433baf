"""How wide a text will be, and what is left of one that is too long."""

from __future__ import annotations

DPI = 100
"""Dots an inch of every chart; font sizes are points."""


def width(text: str, size: float) -> float:
    """Pixels, estimated a little too wide: a wide letter is one em, another three fifths."""
    em = size * DPI / 72
    return sum(em if ord(letter) >= 0x2E80 else em * 0.57 for letter in text)


def fit(text: str, size: float, room: float) -> str:
    """The text, its end cut off where it is wider than `room` pixels."""
    if width(text, size) <= room:
        return text
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def cut_middle(text: str, size: float, room: float) -> str:
    """The text, its middle cut out where it is wider than `room` pixels: names differ at both ends."""
    while len(text) > 5 and width(text, size) > room:
        middle = len(text) // 2
        text = text[: middle - 1].rstrip("…") + "…" + text[middle + 1 :].lstrip("…")
    return text


def shorten(text: str, part: str, size: float, room: float) -> str:
    """The text with that part of it cut, and not what stands behind, where it is wider than `room` pixels."""
    while width(text, size) > room and len(part) > 12:
        shorter = part[: max(12, len(part) - 8)].rstrip("… ") + "…"
        text, part = text.replace(part, shorter, 1), shorter
        if len(shorter) <= 13:
            break
    return text
