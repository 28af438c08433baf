"""The Debian packages that the demo cannot do without."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from bot.errors import ConfigError

PROGRAMS = {
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "redis-server": "redis-server",
}
"""Package by program; each is looked up on the PATH."""

CJK_FONT_PACKAGE = "fonts-noto-cjk"
_FONT_DIRECTORIES = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path.home() / ".local/share/fonts",
    Path.home() / ".fonts",
)
_CJK_NAMES = ("*CJK*", "*wqy*", "*SourceHan*")


def has_cjk_font(directories: Iterable[Path] = _FONT_DIRECTORIES) -> bool:
    """Whether charts and PDFs can show Chinese."""
    return any(
        next(directory.rglob(name), None) is not None
        for directory in directories
        if directory.is_dir()
        for name in _CJK_NAMES
    )


def missing_packages(
    find: Callable[[str], str | None] = shutil.which,
    font_directories: Iterable[Path] = _FONT_DIRECTORIES,
) -> list[str]:
    """Packages to install, in a fixed order."""
    missing = [package for program, package in PROGRAMS.items() if find(program) is None]
    if not has_cjk_font(font_directories):
        missing.append(CJK_FONT_PACKAGE)
    return missing


def require_packages(
    find: Callable[[str], str | None] = shutil.which,
    font_directories: Iterable[Path] = _FONT_DIRECTORIES,
) -> None:
    """Stops before anything is started when something is missing.

    Raises:
        ConfigError: the one line to run.
    """
    if missing := missing_packages(find, font_directories):
        raise ConfigError(
            "packages are missing; run: "
            f"sudo apt-get install -y --no-install-recommends {' '.join(missing)}"
        )
