"""The knowledge files as they count now: shipped and team files below, accepted changes in Redis over them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.checklist import Checklist, load_checklists, parse_checklist
from bot.checklist.diffs import apply_change, files_of
from bot.checklist.editions import Edition, edition
from bot.domain.checklist import Usage
from bot.errors import CommandError, ConfigError, Reason
from bot.locales import say
from bot.store import knowledge
from bot.store.transaction import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """A checklist as it counts now, and what it is made of."""

    checklist: Checklist
    edition: Edition


def path_of(checklist_id: str) -> str:
    """The file of a checklist, relative to the knowledge folder."""
    return f"checklists/{checklist_id}.yaml"


class Shelf:
    """The checklists of one deployment."""

    def __init__(self, store: Store, folders: Sequence[Path]) -> None:
        """folders: shipped first, the team's own after it.

        Raises:
            ConfigError: a file has faults; one line per fault.
        """
        self._store = store
        self._files: Mapping[str, Checklist] = load_checklists(folders)
        self._held: dict[str, Current] = {}

    async def current(self) -> dict[str, Current]:
        """Every checklist as it counts now, whoever of the replicas took the last change.

        Raises:
            StoreError: Redis is not reachable.
        """
        heads = await knowledge.heads(self._store)
        return {name: await self._newest(name, heads.get(path_of(name), 0)) for name in self._files}

    async def teaches(self) -> bool:
        """Whether any list holds what an incident taught.

        Raises:
            StoreError: Redis is not reachable.
        """
        current = await self.current()
        return any(
            check.learned_from for item in current.values() for check in item.checklist.items
        )

    async def one(self, name: str) -> Current:
        """One checklist as it counts now.

        Raises:
            CommandError: there is no such checklist.
            StoreError: Redis is not reachable.
        """
        if name not in self._files:
            known = ", ".join(self._files)
            raise CommandError(
                say("checklist.unknown", name=name[:60], known=known), reason=Reason.NOT_FOUND
            )
        return await self._newest(name, await knowledge.head(self._store, path_of(name)))

    async def _newest(self, name: str, number: int) -> Current:
        held = self._held.get(name)
        if held is not None and held.edition.number == number:
            return held
        path = path_of(name)
        base = self._files[name]
        accepted = await knowledge.versions(self._store, path)
        # Reading YAML takes tens of milliseconds, in which nothing else would be answered.
        made = await asyncio.to_thread(edition, path, base.source, accepted, _Good(Path(path)))
        checklist = base
        if made.number:
            checklist = await asyncio.to_thread(parse_checklist, made.text, Path(path))
        self._held[name] = Current(checklist=checklist, edition=made)
        return self._held[name]

    async def files(self) -> dict[str, str]:
        """Accepted files that are no checklists (causes, alert rules, …): what each stands for as a diff, by path.

        Raises:
            StoreError: Redis is not reachable.
        """
        found: dict[str, str] = {}
        for path in await knowledge.heads(self._store):
            if not path.startswith("checklists/"):
                for version in await knowledge.versions(self._store, path):
                    found[path] = version.diff
        return found

    async def patch(self) -> str:
        """All that was accepted, as one diff against the files below; `git apply` takes it.

        Raises:
            StoreError: Redis is not reachable.
        """
        made = [item.edition.patch for _, item in sorted((await self.current()).items())]
        return "".join([*made, *(diff for _, diff in sorted((await self.files()).items()))])

    async def accepted(self) -> dict[str, bytes]:
        """All that was accepted, as whole files by their path relative to the knowledge folder.

        Raises:
            StoreError: Redis is not reachable.
        """
        found = {
            item.edition.path: item.edition.text.encode()
            for item in (await self.current()).values()
            if item.edition.patch
        }
        for diff in (await self.files()).values():
            found.update({path: text.encode() for path, text in files_of(diff).items()})
        return dict(sorted(found.items()))

    async def faults(self) -> list[str]:
        """What is wrong with the accepted changes: `file@version:line: message`; a fault keeps a change from counting.

        Raises:
            StoreError: Redis is not reachable.
        """
        found: list[str] = []
        for name, item in sorted((await self.current()).items()):
            made = item.edition
            found += [
                f"{made.path}@v{number}:1: does not fit the file below; "
                f"roll {name} back or put the change into the file"
                for number in made.left_out
            ]
            found += [
                fault.replace(":", f"@v{made.number}:", 1)
                for fault in _Good(Path(made.path)).faults(made.text)
            ]
        return found

    async def usage(self, name: str) -> dict[str, Usage]:
        """How each check of a list has fared so far.

        Raises:
            StoreError: Redis is not reachable.
        """
        return await knowledge.usage(self._store, name)

    async def after(self, name: str, diff: str) -> str:
        """The checklist's text after a change.

        Raises:
            CommandError: the change does not fit, or would leave the checklist broken.
        """
        # Items are the last key of a list, so what is only added can always go to the end.
        now = (await self.one(name)).edition.text
        text = apply_change(now, diff, adds_at_end=True)
        try:
            parse_checklist(text, Path(path_of(name)))
        except ConfigError as error:
            raise CommandError(
                say("checklist.invalid", fault=error.faults[0][:300]), reason=Reason.MALFORMED
            ) from error
        return text


@dataclass(frozen=True, slots=True)
class _Good:
    path: Path

    def __call__(self, text: str) -> bool:
        return not self.faults(text)

    def faults(self, text: str) -> tuple[str, ...]:
        try:
            parse_checklist(text, self.path)
        except ConfigError as error:
            return error.faults
        return ()
