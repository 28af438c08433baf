"""Writes a text that a pattern of the catalogue matches, so that an exercise has log lines and changes to find."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = {"d": "4", "w": "x", "s": " ", "b": "", "B": "", "S": "x", "n": " ", "A": "", "Z": ""}
_MOST_REPEATS = 3


def sample(pattern: str) -> str | None:
    r"""A short text that `pattern` finds something in, or None where this simple writer cannot make one.

    >>> sample(r"(reader|loader).*(slow|took \d+)")
    'reader slow'
    """
    try:
        re.compile(pattern)
        text = _Writer(pattern=pattern).alternatives()
    except (IndexError, ValueError, StopIteration, re.error):
        return None
    for candidate in (text, " ".join(text.split()), "work"):
        if candidate and re.search(pattern, candidate, re.IGNORECASE):
            return candidate
    return None


@dataclass(slots=True)
class _Writer:
    """Walks a pattern once and takes the first way through it."""

    pattern: str
    at: int = 0

    def alternatives(self) -> str:
        """The first alternative; the others are walked over."""
        first = self._sequence()
        while self._peek() == "|":
            self.at += 1
            self._sequence()
        return first

    def _sequence(self) -> str:
        written: list[str] = []
        while (char := self._peek()) not in ("", "|", ")"):
            piece = self._piece(char)
            written.append(self._repeated(piece))
        return "".join(written)

    def _piece(self, char: str) -> str:
        self.at += 1
        match char:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                escaped = self.pattern[self.at]
                self.at += 1
                return _ESCAPES.get(escaped, escaped)
            case ".":
                return " "
            case "^" | "$":
                return ""
            case _:
                return char

    def _group(self) -> str:
        is_absent = self.pattern.startswith(("?!", "?<!"), self.at)
        found = re.compile(r"\?(?:[:=!]|<[=!]|[aiLmsux-]+:|[aiLmsux]+(?=\))|P<\w+>)").match(
            self.pattern, self.at
        )
        if found:
            self.at = found.end()
        inner = self.alternatives()
        self.at += 1
        return "" if is_absent else inner

    def _set(self) -> str:
        end = self.at + 1
        while self.pattern[end] != "]":
            end += 2 if self.pattern[end] == "\\" else 1
        body, self.at = self.pattern[self.at : end], end + 1
        if body.startswith("^"):
            return next(char for char in "x4 -" if not re.match(f"[{body[1:]}]", char))
        for char in "x4 -_./" + body:
            if re.match(f"[{body}]", char):
                return char
        return ""

    def _repeated(self, piece: str) -> str:
        match self._peek():
            case "?":
                self.at += 1
                return ""
            case "*":
                self.at += 1
                return piece if piece == " " else ""
            case "+":
                self.at += 1
                return piece
            case "{":
                end = self.pattern.index("}", self.at)
                least = self.pattern[self.at + 1 : end].split(",")[0]
                self.at = end + 1
                return piece * max(1, min(int(least or 1), _MOST_REPEATS))
            case _:
                return piece

    def _peek(self) -> str:
        return self.pattern[self.at] if self.at < len(self.pattern) else ""
