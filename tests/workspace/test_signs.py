"""Signs of the bot's messages on a machine without an emoji font: drawn, and not spelled out between colons."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "bot" / "workspace" / "static"
_SIGN = re.compile("[\u23e9-\u23fa\u2600-\u27bf\u2b1b\u2b1c\U0001f300-\U0001faff]")


def _used() -> set[str]:
    folders = (ROOT / "templates" / "slack", ROOT / "templates" / "locales", ROOT / "bot" / "slack")
    files = [path for folder in folders for path in folder.rglob("*.*") if path.suffix != ".pyc"]
    return {sign for path in files for sign in _SIGN.findall(path.read_text(encoding="utf-8"))}


def test_every_sign_of_the_bots_messages_has_a_drawing() -> None:
    text = (STATIC / "text.js").read_text(encoding="utf-8")
    table = text[text.index("const EMOJI") : text.index("const NAMES")]
    pairs = re.findall(r'"?([\w+-]+)"?: "([^"]+)"', table)
    names = {sign.replace("\ufe0f", ""): name for name, sign in pairs if not sign.startswith("#")}
    dots = set(re.findall(r'"([^"]+)": "#', table))
    icons = (STATIC / "icons.js").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^  (\w+): \[", icons, re.MULTILINE))
    assert _used()
    assert {s for s in _used() if s not in dots and names.get(s) not in drawn} == set()
