"""Writes the generated parts of the READMEs: `python -m tests.readme_tables` (also `make fix`)."""

from __future__ import annotations

from pathlib import Path

import bot.probes
from bot.probe import Probe
from bot.registry import collect

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- findings:begin -->", "<!-- findings:end -->"
HEADS = {
    "README.md": ("probe", "cost", "findings"),
    "README.zh-CN.md": ("探针", "开销", "结论"),
}


def findings_table(heads: tuple[str, str, str]) -> str:
    """One line per probe, from the probes themselves."""
    lines = [f"| {' | '.join(heads)} |", "| --- | --- | --- |"]
    for name, probe in collect(bot.probes, Probe).items():
        findings = ", ".join(f"`{finding}`" for finding in probe.findings)
        lines.append(f"| `{name}` | {probe.cost.value} | {findings} |")
    return "\n".join(lines)


def rendered(name: str) -> str:
    """The README as it should be."""
    text = (ROOT / name).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{findings_table(HEADS[name])}\n{END}{after}"


if __name__ == "__main__":
    for readme in HEADS:
        (ROOT / readme).write_text(rendered(readme), encoding="utf-8")
