"""Knowledge files of every kind, written by people or accepted in a thread: what would never end is a fault with its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bot import checklist, sop
from bot.diagnosis import knowledge

KINDS: dict[str, Callable[[Sequence[Path]], Sequence[object]]] = {
    "causes": knowledge.lint,
    "sops": sop.lint,
    "checklists": checklist.lint,
}
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
)
HOSTILE = {
    "aliases that unfold to a billion": (BOMB, "own.yaml:2: an alias is not read"),
    "a list within itself": ("id: own\ntitle: &a [*a]\n", "own.yaml:2: an alias is not read"),
    "brackets without end": ("title: " + "[" * 50_000, "own.yaml:1: "),
    "brackets that end": ("title: " + "[" * 500 + "]" * 500, "own.yaml:1: is nested too"),
    "nothing": ("# later\n", "own.yaml:1: "),
    "a list in the place of the file": ("- 1\n", "own.yaml:1: "),
    "a control character": ("id: \x07\n", "own.yaml:1: "),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_file_is_a_fault_and_nothing_worse(kind: str, what: str, tmp_path: Path) -> None:
    text, fault = HOSTILE[what]
    path = tmp_path / kind / "own.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    said = [str(one) for one in KINDS[kind]([path])]
    assert any(fault in line for line in said), said
    assert all("\n" not in line for line in said)
