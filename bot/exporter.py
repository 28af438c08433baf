"""What an exporter is: it writes a postmortem in one format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How to write it: in which language."""

    locale: Locale


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was written. `main` names the file that is the report; the others (images, data) lie beside it.

    files: relative path, with `/` and without `..`, to content.
    """

    main: str
    files: Mapping[str, bytes]

    @property
    def content(self) -> bytes:
        """The report itself."""
        return self.files[self.main]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """One format.

    name: the module's name. suffix: of the file, and the word that people type (`md`).
    export: blocks while it works (a PDF takes seconds), so callers run it in a thread or process. It masks secrets
    itself unless the report was redacted before, and never reaches the network.
    """

    name: str
    suffix: str
    media_type: str
    export: Callable[[Postmortem, ExportOptions], Export]
