"""A knowledge file with the accepted changes over it: its text now, who brought each line, and what fits no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.checklist.diffs import diff_of, files_of, lines_of, merged, parse_diff, text_of
from bot.domain.checklist import Version, VersionOp
from bot.errors import CommandError


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """One line, and the version that brought it; None for a line of the file itself."""

    text: str
    version: Version | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A file as it counts now.

    patch: what turns the file below into this one; empty where nothing was accepted.
    number: of the newest version, 0 where there is none.
    left_out: numbers of versions that the file has moved away from since; they do not count.
    """

    path: str
    patch: str
    number: int
    lines: tuple[BlamedLine, ...]
    versions: tuple[Version, ...]
    left_out: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The whole file."""
        return text_of([line.text for line in self.lines])


def edition(
    path: str,
    base: str,
    versions: Sequence[Version],
    is_good: Callable[[str], bool] = lambda _: True,
) -> Edition:
    """Lays accepted changes over a file, in their order.

    A change that no longer fits (the product or the team has changed the file below), or after which the file would not
    be good, is left out and named, never guessed at.
    """
    made = _laid(path, base, versions, lambda _: True)
    # Each was good when it was accepted, so the end is nearly always good too; only else is each looked at again.
    return made if is_good(made.text) else _laid(path, base, versions, is_good)


def edition_of_files(path: str, versions: Sequence[Version]) -> Edition:
    """New files for another system: each accepted change is all of them anew, in the place of what was before."""
    now: Version | None = None
    stood: dict[int, Version | None] = {0: None}
    for version in versions:
        now = stood.get(version.to or 0) if version.op is VersionOp.ROLLED_BACK else version
        stood[version.number] = now
    patch = now.diff if now else ""
    return Edition(
        path=path,
        patch=patch,
        number=versions[-1].number if versions else 0,
        lines=tuple(
            BlamedLine(text=line, version=now)
            for text in files_of(patch).values()
            for line in lines_of(text)
        ),
        versions=tuple(versions),
    )


def _laid(
    path: str, base: str, versions: Sequence[Version], is_good: Callable[[str], bool]
) -> Edition:
    now: list[BlamedLine] = [BlamedLine(text=line, version=None) for line in lines_of(base)]
    stood: dict[int, list[BlamedLine]] = {0: now}
    left_out: list[int] = []
    for version in versions:
        if version.op is VersionOp.ROLLED_BACK:
            now = stood.get(version.to or 0, now)
        elif (after := _applied(now, version, path)) is not None and is_good(
            text_of([line.text for line in after])
        ):
            now = after
        else:
            left_out.append(version.number)
        stood[version.number] = now
    return Edition(
        path=path,
        patch=diff_of(path, base, text_of([line.text for line in now])),
        number=versions[-1].number if versions else 0,
        lines=tuple(now),
        versions=tuple(versions),
        left_out=tuple(left_out),
    )


def _applied(lines: Sequence[BlamedLine], version: Version, path: str) -> list[BlamedLine] | None:
    try:
        changes = [change for change in parse_diff(version.diff) if change.path == path]
        after = list(lines)
        for change in changes:
            # Items are the last key of a checklist; in other files the end is another place.
            is_list = path.startswith("checklists/")
            places = merged([line.text for line in after], change, adds_at_end=is_list)
            after = [
                BlamedLine(text=item, version=version) if isinstance(item, str) else after[item]
                for item in places
            ]
    except CommandError:
        return None
    return after if changes else None
