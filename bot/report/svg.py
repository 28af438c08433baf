"""Lets a stored drawing into a page: only shapes and text get through, under names that no other drawing has."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from bot.report import palette

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_ELEMENTS = frozenset(
    [
        "svg",
        "g",
        "path",
        "text",
        "tspan",
        "defs",
        "use",
        "rect",
        "clipPath",
        "pattern",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "title",
        "desc",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "id",
        "d",
        "x",
        "y",
        "x1",
        "y1",
        "x2",
        "y2",
        "cx",
        "cy",
        "r",
        "rx",
        "ry",
        "width",
        "height",
        "viewBox",
        "points",
        "transform",
        "style",
        "clip-path",
        "patternUnits",
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "stroke-linejoin",
        "stroke-linecap",
        "stroke-opacity",
        "opacity",
        "font-size",
        "font-family",
        "font-weight",
        "text-anchor",
        "dominant-baseline",
        "preserveAspectRatio",
    ]
)
_REFERENCE = re.compile(r"url\(\s*['\"]?#([\w.:-]+)['\"]?\s*\)")
_ACTIVE_STYLE = re.compile(
    r"url\s*\(\s*['\"]?(?!#)|expression|@import|javascript:|\\", re.IGNORECASE
)
_LIMIT = 8 << 20
"""Bytes; a chart of ours is below 1 MiB."""


def clean_svg(content: bytes, *, name: str, alt: str) -> bytes | None:
    """The drawing without anything that acts or loads, its ids prefixed with `name`; None when it is no drawing.

    alt: what the drawing shows, for those who cannot see it.
    """
    text = content.decode("utf-8", "replace")
    if len(content) > _LIMIT or "<!ENTITY" in text:
        return None
    try:
        root = ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", text, count=1))  # noqa: S314
    except ElementTree.ParseError:
        return None
    if root.tag != f"{{{_SVG}}}svg":
        return None
    used = set(_REFERENCE.findall(text)) | set(re.findall(r"href=\"#([^\"]+)\"", text))
    _clean(root, name, used)
    root.set("role", "img")
    root.set("aria-label", alt)
    root.set("stroke-linejoin", "round")
    _size(root)
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode").encode("utf-8", "replace")


def _clean(element: ElementTree.Element, name: str, used: set[str]) -> None:
    for child in list(element):
        local = child.tag.removeprefix(f"{{{_SVG}}}") if isinstance(child.tag, str) else ""
        if local in _ELEMENTS and local != "svg":
            _clean(child, name, used)
        else:
            element.remove(child)
    href = element.attrib.get(f"{{{_XLINK}}}href") or element.attrib.get("href") or ""
    kept = {}
    for key, value in element.attrib.items():
        if key not in _ATTRIBUTES or _ACTIVE_STYLE.search(value):
            continue
        if key == "id":
            if value in used:
                kept["id"] = f"{name}-{value}"
            continue
        kept[key] = _REFERENCE.sub(lambda match: f"url(#{name}-{match[1]})", value)
    if href.startswith("#"):
        kept["href"] = f"#{name}-{href[1:]}"
    element.attrib.clear()
    element.attrib.update(kept)
    if element.text is not None and element.tag != f"{{{_SVG}}}text" and not element.text.strip():
        element.text = None
    if element.tail is not None and not element.tail.strip():
        element.tail = None


def _size(root: ElementTree.Element) -> None:
    """Sizes in the drawing's own units, so that a page can scale it by its width alone."""
    box = root.attrib.get("viewBox", "").split()
    if len(box) == 4:
        root.set("width", box[2])
        root.set("height", box[3])


def themed(svg: str) -> str:
    """The drawing with its colours as CSS variables of the page, each with itself as the fallback."""
    return re.sub(
        "|".join(map(re.escape, palette.DARK)),
        lambda match: f"var({palette.variable(match[0])},{match[0]})",
        svg,
    )
