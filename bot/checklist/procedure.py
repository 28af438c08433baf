"""Writes a prompt into the text of an SOP, without a change to any other line."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from bot.checklist.diffs import lines_of, text_of
from bot.checklist.writing import localized, quoted
from bot.domain.text import Locale, Localized
from bot.yaml_loader import LOADER


def with_prompt(
    source: str, step: str, prompt: Localized, *, learned_from: str, matches: Sequence[str]
) -> str | None:
    """The text with one more prompt at the end of a step's; None where it is there, or the file leaves no place for it.

    matches: words of the symptoms that the prompt is for; none: for any incident.
    """
    prompts = _prompts(source, step)
    if prompts is None or not prompts.value or prompts.flow_style:
        return None
    said = prompt.en.strip()
    if any(_english(item) == said for item in prompts.value):
        return None
    last = prompts.value[-1]
    indent = " " * prompts.start_mark.column
    added = [line.strip() for line in localized(prompt, "")]
    lines = [f"{indent}- {added[0]}", f"{indent}  {added[1]}"]
    lines.append(f"{indent}  learned_from: {learned_from}")
    if matches:
        lines.append(f"{indent}  matches: [{', '.join(quoted(word) for word in matches)}]")
    # The mark of a block's end stands behind it; that of its last value does not.
    end = _last_line(last) + 1
    before = lines_of(source)
    return text_of([*before[:end], *lines, *before[end:]])


def title_of(source: str, step: str) -> Localized:
    """What the SOP calls a step; its id where it does not say."""
    title = _value(_step(source, step), "title")
    names = [_value(title, locale.value) for locale in (Locale.EN, Locale.ZH_CN)]
    said = [str(name.value) if isinstance(name, yaml.ScalarNode) else step for name in names]
    return Localized(*said)


def _prompts(source: str, step: str) -> yaml.SequenceNode | None:
    found = _value(_step(source, step), "prompts")
    return found if isinstance(found, yaml.SequenceNode) else None


def _step(source: str, step: str) -> yaml.Node | None:
    try:
        root = yaml.compose(source, Loader=LOADER)
    except yaml.YAMLError:
        return None
    steps = _value(root, "steps")
    for item in steps.value if isinstance(steps, yaml.SequenceNode) else ():
        name = _value(item, "id")
        if isinstance(name, yaml.ScalarNode) and name.value == step:
            return item if isinstance(item, yaml.Node) else None
    return None


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _english(node: yaml.Node) -> str | None:
    found = _value(node, "en")
    return str(found.value).strip() if isinstance(found, yaml.ScalarNode) else None


def _last_line(node: yaml.Node) -> int:
    """The line, from 0, on which the last thing of a node ends."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1])
    # A block scalar ends at the beginning of the next line, everything else within its own.
    is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return int(node.end_mark.line) - (1 if is_block else 0)
