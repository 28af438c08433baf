"""Finds the font files that drawings need; a font cache that is older than the font hides nothing from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# In order of preference; each covers simplified Chinese and Latin.
_CHINESE = (
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "NotoSansSC-Regular.otf",
    "NotoSansSC-Regular.ttf",
    "NotoSansSC*.ttf",
    "SourceHanSansSC-Regular.otf",
    "SourceHanSansCN-Regular.otf",
    "SourceHanSans.ttc",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "PingFang.ttc",
    "msyh.ttc",
    "DroidSansFallback*.ttf",
)
FOLDERS = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path("/System/Library/Fonts"),
    Path("/Library/Fonts"),
    Path("C:/Windows/Fonts"),
)
INSTALL_HINT = "install the Debian package fonts-noto-cjk"


@dataclass(frozen=True, slots=True, kw_only=True)
class FontFiles:
    """The files of a family that covers Chinese; `bold` is None where only the regular weight is there."""

    regular: Path
    bold: Path | None


def find_chinese_font(folders: Sequence[Path] | None = None) -> FontFiles | None:
    """The best installed font that covers Chinese, by looking at the folders themselves; None if there is none.

    folders: None for the system's and the user's own.
    """
    searched = _usual_folders() if folders is None else folders
    for pattern in _CHINESE:
        for folder in searched:
            found = _first(folder.rglob(pattern)) if folder.is_dir() else None
            if found is not None:
                bold = found.with_name(found.name.replace("Regular", "Bold"))
                return FontFiles(
                    regular=found, bold=bold if bold != found and bold.is_file() else None
                )
    return None


@cache
def has_chinese_font() -> bool:
    """Whether this machine can draw Chinese."""
    return find_chinese_font() is not None


def _usual_folders() -> tuple[Path, ...]:
    try:
        home = Path.home()
    except RuntimeError:
        # A service user may have no home; then it has no fonts of its own either.
        return FOLDERS
    return (*FOLDERS, home / ".local/share/fonts", home / ".fonts")


def _first(paths: Iterable[Path]) -> Path | None:
    return min((path for path in paths if path.is_file()), default=None)


@cache
def covered_characters(font: FontFiles | None) -> frozenset[int]:
    """Code points that `font`, or a DejaVu Sans beside it, has a glyph for."""
    from fontTools.ttLib import TTCollection, TTFont  # type: ignore[import-untyped]

    covered: set[int] = set()
    dejavu = _first(
        path
        for folder in _usual_folders()
        if folder.is_dir()
        for path in folder.rglob("DejaVuSans.ttf")
    )
    for path in (font.regular if font else None, dejavu):
        if path is None:
            continue
        if path.suffix == ".ttc":
            with TTCollection(str(path), lazy=True) as collection:
                covered.update(collection.fonts[0].getBestCmap())
        else:
            with TTFont(str(path), lazy=True) as single:
                covered.update(single.getBestCmap())
    return frozenset(covered)
