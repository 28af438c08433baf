"""Slack's text: escaped once on the way out, plain on the way in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

_TOKEN = re.compile(r"<([^<>\n]{1,3000})>")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_FENCE = "```"
# Looks the same and closes nothing.
_LOOKALIKE_FENCE = "ˋˋˋ"
_ELLIPSIS = "…"
# A mark inside a word, as in snake_case, formats nothing.
_AT_EDGES = {mark: re.compile(rf"(?<!\w)[{mark}]|[{mark}](?!\w)") for mark in "*_~"}
# White space, and marks that are drawn as nothing.
_BEFORE_MENTION = " \t\r\n\u00a0\u2009\u202f\u3000\u00ad\u200b\u200e\u200f\u2060\ufeff"


def escape(text: str) -> str:
    """The three characters that Slack reads as markup. Everything else is shown as it is.

    >>> escape('a < b && "c" <!channel>')
    'a &lt; b &amp;&amp; "c" &lt;!channel&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quiet(text: str) -> str:
    """Foreign words whose marks cannot reach the words around them: a mark without its partner is broken up.

    >>> quiet("a `b` *c* d_e"), quiet("a ` b"), len(quiet("2 * 3"))
    ('a `b` *c* d_e', 'a ˋ b', 6)
    """
    broken = text.replace(_FENCE, _LOOKALIKE_FENCE)
    if broken.count("`") % 2:
        broken = broken.replace("`", "ˋ")
    for mark, pattern in _AT_EDGES.items():
        if len(pattern.findall(broken)) % 2:
            broken = pattern.sub(f"{mark}\u2060", broken)
    return broken


def unescape(text: str) -> str:
    """What `escape` did, undone."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def link(url: str | None, label: str) -> str:
    """`<url|label>`, or the escaped label alone where the address is none that may be opened.

    >>> link("http://prom.example/graph?g0.expr=a>0.5|x&g0.tab=1", "TTFT *high*")
    '<http://prom.example/graph?g0.expr=a%3E0.5%7Cx&amp;g0.tab=1|TTFT high>'
    """
    shown = " ".join(label.split())
    for mark in "*_~`|":
        shown = shown.replace(mark, "" if mark != "_" else "_")
    if not is_link(url):
        return escape(shown)
    return f"<{_address(url or '')}|{escape(shown) or 'link'}>"


def is_link(url: str | None) -> bool:
    """Whether an address from outside may be made clickable."""
    if not url or len(url) > 2500 or any(character.isspace() for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "{{" not in url
    except ValueError:
        return False


def _address(url: str) -> str:
    broken = "".join(quote(mark) if mark in '<>|"`' else mark for mark in url)
    return broken.replace("&", "&amp;")


def code(text: str) -> str:
    r"""A code block that nothing inside can end.

    >>> code("x```y")
    '```\nxˋˋˋy\n```'
    """
    return f"{_FENCE}\n{escape(text.replace(_FENCE, _LOOKALIKE_FENCE)).strip(chr(10))}\n{_FENCE}"


def inline_code(text: str) -> str:
    """A piece of inline code on one line."""
    flat = " ".join(text.replace("`", "ˋ").split())
    return f"`{escape(flat)}`" if flat else "–"


def cut(text: str, most: int) -> str:
    """At most `most` characters, with an ellipsis where something is left out."""
    return text if len(text) <= most else text[: most - 1].rstrip() + _ELLIPSIS


def plain(text: str, names: Mapping[str, str] | None = None) -> str:
    """A message's text as a person reads it: no tokens, no entities.

    names: user id to name; a person who is not in it stays as the id.

    >>> plain("<@U1|lin> see <http://x.example/a|the log> &amp; <!here>", {})
    '@lin see the log (http://x.example/a) & @here'
    """
    known = names or {}
    return unescape(_TOKEN.sub(lambda found: escape(_token(found.group(1), known)), text))


def _token(body: str, names: Mapping[str, str]) -> str:
    head, has_label, label = body.partition("|")
    label, head = unescape(label), unescape(head)
    match head[:1]:
        case "@":
            return "@" + (names.get(head[1:]) or label or head[1:])
        case "#":
            return "#" + (label or head[1:])
        case "!":
            word, _, rest = head[1:].partition("^")
            if word == "subteam":
                return "@" + (label.lstrip("@") or rest.partition("^")[0])
            return label if has_label else f"@{word}"
        case _:
            address = head.removeprefix("mailto:")
            return address if not label or label in (head, address) else f"{label} ({head})"


def command_text(text: str) -> str:
    """The words of a command: entities undone, addresses that Slack made of host names plain again, people kept."""

    def keep(found: re.Match[str]) -> str:
        body = found.group(1)
        if body[:1] in ("@", "#"):
            return found.group()
        if body[:1] == "!":
            return escape(_token(body, {}))
        head, _, label = body.partition("|")
        return label or head

    return unescape(_TOKEN.sub(keep, text))


def prose_text(text: str, names: Mapping[str, str]) -> str:
    """The words of a command that are kept as a person's own: people by name, an address beside what it was called.

    >>> prose_text("<@U1|lin> saw <http://gpu-17.example|gpu-17.example>, <http://x.example/a|the log>", {"U1": "林岚"})
    '@林岚 saw gpu-17.example, the log (http://x.example/a)'
    """

    def keep(found: re.Match[str]) -> str:
        head, _, label = found.group(1).partition("|")
        if head[:1] in ("@", "#", "!") or not _is_own_name(head, label):
            return escape(_token(found.group(1), names))
        return label

    return unescape(_TOKEN.sub(keep, text))


def _is_own_name(head: str, label: str) -> bool:
    """Whether an address is only what Slack made of the words that stand before it."""
    bare = head.removeprefix("mailto:").removeprefix("https://").removeprefix("http://")
    return bool(label) and bare.rstrip("/") == label.rstrip("/")


def named(text: str, names: Mapping[str, str]) -> str:
    """A text with the people it mentions by name; one who is not in `names` stays as the id.

    >>> named("final already by <@U1> and <@U2>", {"U1": "lin"})
    'final already by @lin and @U2'
    """
    return _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", text)


def mentions(text: str) -> tuple[str, ...]:
    """The ids of the people that a text mentions, each once."""
    return tuple(dict.fromkeys(_MENTION.findall(text)))


def after_mention(text: str, user: str) -> str | None:
    """The rest of a text that begins with a mention of `user`; None when it does not."""
    bare = text.lstrip(_BEFORE_MENTION)
    found = _MENTION.match(bare)
    if found is None or found.group(1) != user:
        return None
    return bare[found.end() :].lstrip(_BEFORE_MENTION + ":,，：、").rstrip()


def file_name(text: str, fallback: str) -> str:
    """A name without folders and control characters."""
    kept = re.sub(r"[\x00-\x1f\x7f/\\:]+", "-", text).strip(" .-")
    return cut(kept, 120) or fallback
