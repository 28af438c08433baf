"""The knowledge files as they count now: shipped and team files below, accepted changes in Redis over them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.cause import Catalogue
from bot.checklist import Checklist, load_checklists, parse_checklist
from bot.checklist.diffs import apply_change, files_of
from bot.checklist.editions import Edition, edition, edition_of_files
from bot.diagnosis.knowledge import with_cause
from bot.domain.checklist import Usage
from bot.errors import CommandError, ConfigError, Reason
from bot.locales import say
from bot.sop import Sop, parse_sop
from bot.store import knowledge
from bot.store.transaction import Store

PROCEDURE = "sop"
"""What people call the SOP, whatever its file is named."""
_CAUSES, _MONITORING = "causes/", "monitoring/"
_ALONE = (_CAUSES, _MONITORING)
"""Where accepted files lie over none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """A checklist as it counts now, and what it is made of."""

    checklist: Checklist
    edition: Edition


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The SOP and the causes that count."""

    sop: Sop
    catalogue: Catalogue


def path_of(name: str) -> str:
    """The file of a checklist by its id, or of `sops/<id>`, `causes/<id>`, `monitoring/<name>`; relative to the folder."""
    return f"{name}.yaml" if "/" in name else f"checklists/{name}.yaml"


def is_monitoring(name: str) -> bool:
    """Whether a name is that of files for another system, which nothing here reads."""
    return name.startswith(_MONITORING)


class Shelf:
    """The checklists, the SOP and the accepted causes of one deployment."""

    def __init__(self, store: Store, folders: Sequence[Path], files: Known) -> None:
        """folders: of checklists, shipped first, the team's own after it. files: SOP and causes as their files have them.

        Raises:
            ConfigError: a file has faults; one line per fault.
        """
        self._store = store
        self._files: Mapping[str, Checklist] = load_checklists(folders)
        self.files_below = files
        self._held: dict[str, Current] = {}
        self._editions: dict[str, Edition] = {}

    async def current(self) -> dict[str, Current]:
        """Every checklist as it counts now, whoever of the replicas took the last change.

        Raises:
            StoreError: Redis is not reachable.
        """
        heads = await knowledge.heads(self._store)
        return {name: await self._newest(name, heads.get(path_of(name), 0)) for name in self._files}

    async def known(self) -> Known:
        """The SOP and the causes as they count now.

        Raises:
            StoreError: Redis is not reachable.
        """
        heads = await knowledge.heads(self._store)
        below = self.files_below
        sop, catalogue = below.sop, below.catalogue
        path = path_of(self.procedure)
        if number := heads.get(path, 0):
            text = (await self._edition(path, number)).text
            sop = await asyncio.to_thread(parse_sop, text, Path(path), version=number)
        for path, number in heads.items():
            if not path.startswith(_CAUSES) or Path(path).stem in below.catalogue.causes:
                # What the team has put into its own folder is the team's from then on.
                continue
            if text := (await self._edition(path, number)).text:
                catalogue = await asyncio.to_thread(with_cause, catalogue, Path(path), text)
        return Known(sop=sop, catalogue=catalogue)

    @property
    def procedure(self) -> str:
        """The name of the SOP's file."""
        return f"sops/{self.files_below.sop.id}"

    async def teaches(self) -> bool:
        """Whether any list, or the SOP, holds what an incident taught.

        Raises:
            StoreError: Redis is not reachable.
        """
        if await knowledge.head(self._store, path_of(self.procedure)):
            return True
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
            raise self._unknown(name)
        return await self._newest(name, await knowledge.head(self._store, path_of(name)))

    async def edition_of(self, name: str) -> Edition:
        """A checklist, the SOP (`sop`), an accepted cause (`causes/<id>`) or accepted files (`monitoring/<name>`).

        Raises:
            CommandError: there is none of this name.
            StoreError: Redis is not reachable.
        """
        if name in self._files:
            return (await self.one(name)).edition
        path = path_of(self.named(name))
        number = await knowledge.head(self._store, path)
        if path != path_of(self.procedure) and not (path.startswith(_ALONE) and number):
            raise self._unknown(name)
        return await self._edition(path, number)

    def named(self, name: str) -> str:
        """The name of a file as proposals have it; people say `sop`."""
        return self.procedure if name == PROCEDURE and name not in self._files else name

    def _unknown(self, name: str) -> CommandError:
        known = ", ".join([*self._files, PROCEDURE])
        return CommandError(
            say("checklist.unknown", name=name[:60], known=known), reason=Reason.NOT_FOUND
        )

    async def _newest(self, name: str, number: int) -> Current:
        held = self._held.get(name)
        if held is not None and held.edition.number == number:
            return held
        made = await self._edition(path_of(name), number)
        checklist = self._files[name]
        if made.number:
            checklist = await asyncio.to_thread(parse_checklist, made.text, Path(made.path))
        self._held[name] = Current(checklist=checklist, edition=made)
        return self._held[name]

    async def _edition(self, path: str, number: int) -> Edition:
        held = self._editions.get(path)
        if held is not None and held.number == number:
            return held
        accepted = await knowledge.versions(self._store, path)
        # Reading YAML takes tens of milliseconds, in which nothing else would be answered.
        if path.startswith(_MONITORING):
            made = edition_of_files(path, accepted)
        else:
            made = await asyncio.to_thread(
                edition, path, self._base(path), accepted, lambda text: not self._faults(path, text)
            )
        self._editions[path] = made
        return made

    def _base(self, path: str) -> str:
        if path == path_of(self.procedure):
            return self.files_below.sop.source
        known = self._files.get(Path(path).stem) if path.startswith("checklists/") else None
        return known.source if known else ""

    def _faults(self, path: str, text: str) -> tuple[str, ...]:
        """What `rca-bot sop lint` would say of a text in this file's place."""
        read: Callable[[], object]
        if path == path_of(self.procedure):
            read = lambda: parse_sop(text, Path(path))  # noqa: E731
        elif path.startswith(_CAUSES):
            if not text:
                return ()
            read = lambda: with_cause(self.files_below.catalogue, Path(path), text)  # noqa: E731
        else:
            read = lambda: parse_checklist(text, Path(path))  # noqa: E731
        try:
            read()
        except ConfigError as error:
            return error.faults
        return ()

    async def files(self) -> dict[str, str]:
        """Accepted files that lie over none (causes, alert rules, …): what each stands for as a diff, by path.

        Raises:
            StoreError: Redis is not reachable.
        """
        found: dict[str, str] = {}
        for path, number in (await knowledge.heads(self._store)).items():
            is_own = (
                path.startswith(_CAUSES) and Path(path).stem in self.files_below.catalogue.causes
            )
            if path.startswith(_ALONE) and not is_own:
                found[path] = (await self._edition(path, number)).patch
        return found

    async def _editions_now(self) -> list[Edition]:
        lists = [item.edition for _, item in sorted((await self.current()).items())]
        return [*lists, await self.edition_of(PROCEDURE)]

    async def patch(self) -> str:
        """All that was accepted, as one diff against the files below; `git apply` takes it.

        Raises:
            StoreError: Redis is not reachable.
        """
        made = [item.patch for item in await self._editions_now()]
        return "".join([*made, *(diff for _, diff in sorted((await self.files()).items()))])

    async def accepted(self) -> dict[str, bytes]:
        """All that was accepted, as whole files by their path relative to the knowledge folder.

        Raises:
            StoreError: Redis is not reachable.
        """
        found = {item.path: item.text.encode() for item in await self._editions_now() if item.patch}
        for diff in (await self.files()).values():
            found.update({path: text.encode() for path, text in files_of(diff).items()})
        return dict(sorted(found.items()))

    async def faults(self) -> list[str]:
        """What is wrong with the accepted changes: `file@version:line: message`; a fault keeps a change from counting.

        Raises:
            StoreError: Redis is not reachable.
        """
        heads = await knowledge.heads(self._store)
        causes = [await self._edition(p, n) for p, n in heads.items() if p.startswith(_CAUSES)]
        found: list[str] = []
        for made in [*await self._editions_now(), *causes]:
            found += [
                f"{made.path}@v{number}:1: does not fit the file below; "
                f"roll {Path(made.path).stem} back or put the change into the file"
                for number in made.left_out
            ]
            found += [
                fault.replace(":", f"@v{made.number}:", 1)
                for fault in self._faults(made.path, made.text)
            ]
        return found

    async def usage(self, name: str) -> dict[str, Usage]:
        """How each check of a list has fared so far.

        Raises:
            StoreError: Redis is not reachable.
        """
        return await knowledge.usage(self._store, name)

    async def after(self, name: str, diff: str) -> str:
        """The text of a checklist, the SOP or a cause after a change.

        Raises:
            CommandError: the change does not fit, or would leave the file broken.
        """
        path = path_of(name)
        is_new = path.startswith(_CAUSES)
        now = "" if is_new else (await self.edition_of(name)).text
        # Items are the last key of a list, so what is only added can always go to the end.
        is_list = path.startswith("checklists/")
        text = apply_change(now, diff, adds_at_end=is_list)
        if faults := await asyncio.to_thread(self._faults, path, text):
            raise CommandError(
                say("checklist.invalid", fault=faults[0][:300]), reason=Reason.MALFORMED
            )
        return text
