"""One commit on one branch of a remote repository, made from objects: no work tree, no checkout, no merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.errors import DeliveryError, Reason
from bot.targets._git_commands import Git

_NO_OBJECT = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Newest commits there: of the incident's branch, and of the one it grows from; None where there is no such branch."""

    own: str | None
    base: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The commit that the branch is at now; `is_new` when this delivery made it."""

    commit: str
    is_new: bool


async def refs(git: Git, url: str, branch: str, base: str) -> Tips:
    """Where the two branches stand.

    Raises:
        DeliveryError: the repository does not answer, or has branches but not the one to grow from.
    """
    listed = await git.run("ls-remote", "--heads", "--", url)
    lines = [line.partition("\t") for line in listed.splitlines()]
    heads = {ref: tip for tip, _, ref in lines}
    tips = Tips(own=heads.get(f"refs/heads/{branch}"), base=heads.get(f"refs/heads/{base}"))
    if heads and tips.own is None and tips.base is None:
        raise DeliveryError(
            f"{git.where}: there is no branch {base}; set [git] branch to one that there is",
            reason=Reason.NOT_FOUND,
        )
    return tips


async def commit(
    git: Git,
    *,
    url: str,
    branch: str,
    base: str,
    tips: Tips,
    files: Mapping[str, bytes],
    stale: Sequence[str],
    message: str,
    at: int,
) -> Made:
    """Puts `files` on top of the branch and takes `stale` paths away; everything else in it stays.

    at: seconds since 1970. Paths are ours and hold no hostile character.

    Raises:
        DeliveryError: refused; CONFLICT when the branch has moved since `tips` were read.
    """
    parent = tips.own or tips.base
    index = {"GIT_INDEX_FILE": str(git.folder / "index")}
    if parent is not None:
        source = branch if tips.own else base
        spec = f"+refs/heads/{source}:refs/heads/fetched"
        await git.run("fetch", "--quiet", "--no-tags", "--depth=1", "--", url, spec)
        parent = await git.run("rev-parse", "refs/heads/fetched")
        await git.run("read-tree", parent, more=index)
    else:
        await git.run("read-tree", "--empty", more=index)
    lines = [f"0 {_NO_OBJECT}\t{path}\0" for path in stale]
    for path, content in sorted(files.items()):
        blob = await git.run("hash-object", "-w", "--stdin", given=content)
        lines.append(f"100644 {blob}\t{path}\0")
    await git.run("update-index", "-z", "--index-info", given="".join(lines).encode(), more=index)
    tree = await git.run("write-tree", more=index)
    if parent is not None and tree == await git.run("rev-parse", f"{parent}^{{tree}}"):
        return Made(commit=parent, is_new=False)
    parents = ("-p", parent) if parent is not None else ()
    when = f"{at} +0000"
    made = await git.run(
        "commit-tree", tree, *parents, "-F", "-",
        given=message.encode(),
        more={"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when},
    )  # fmt: skip
    ref = f"refs/heads/{branch}"
    # The lease makes the push fail where somebody moved the branch after we looked; ours never replaces theirs.
    await git.run(
        "push", "--quiet", f"--force-with-lease={ref}:{tips.own or ''}", "--", url, f"{made}:{ref}"
    )
    return Made(commit=made, is_new=True)
