"""The words as people type them: in Chinese, with marks before and behind, in any case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from commands import _typed

# Simplified and traditional; several names for what people call by several.
CHINESE: Mapping[str, str] = MappingProxyType(
    {
        "开始": "start",
        "开启": "start",
        "新建": "start",
        "開始": "start",
        "状态": "status",
        "進展": "status",
        "进展": "status",
        "狀態": "status",
        "步骤": "step",
        "步驟": "step",
        "记录": "note",
        "备注": "note",
        "笔记": "note",
        "記錄": "note",
        "現象": "symptom",
        "现象": "symptom",
        "症状": "symptom",
        "止损": "mitigate",
        "止損": "mitigate",
        "缓解": "mitigate",
        "緩解": "mitigate",
        "探针": "probe",
        "探測": "probe",
        "检查": "probe",
        "檢查": "probe",
        "图表": "chart",
        "圖表": "chart",
        "假设": "hypothesis",
        "假設": "hypothesis",
        "变更": "changes",
        "變更": "changes",
        "角色": "role",
        "级别": "severity",
        "级別": "severity",
        "級別": "severity",
        "严重级别": "severity",
        "节点": "nodes",
        "節點": "nodes",
        "导出": "export",
        "报告": "export",
        "導出": "export",
        "匯出": "export",
        "解决": "resolve",
        "解決": "resolve",
        "关闭": "resolve",
        "關閉": "resolve",
        "检查单": "checklist",
        "清单": "checklist",
        "檢查單": "checklist",
        "搜索": "search",
        "查找": "search",
        "搜尋": "search",
        "统计": "stats",
        "統計": "stats",
        "演练": "drill",
        "演練": "drill",
        "帮助": "help",
        "说明": "help",
        "幫助": "help",
    }
)

_INCIDENT = re.compile(
    r"^inc[\u2010-\u2015\u2212\uff0d-]?([0-9０-９]{1,40})(?![\w-])[:：,，、]?\s*", re.IGNORECASE
)
_WIDE_INCIDENT = re.compile(r"^ＩＮＣ", re.IGNORECASE)
# The command itself, typed once more behind a mention or copied with the line.
_SELF = re.compile(r"^[/／]?rca(?=\s|$)\s*", re.IGNORECASE)
_MARKS = re.compile(r"[:：,，、]")
_AROUND = "`\"'“”‘’.。!！?？;；*_"


def split_word(line: str) -> tuple[str, str]:
    """The word in lower case and the rest, its lines kept; `severity：sev1` and `note: text` are taken too."""
    text = _SELF.sub("", _typed.bare(_typed.cleaned(line)))
    named, behind = split_incident(text)
    if named is None:
        first, rest = _first(text)
    else:
        # The incident first: `INC-12 status`, or alone.
        first, rest = _first(behind) if behind else ("status", "")
        rest = f"{named} {rest}".strip()
    return known(first), rest


def known(word: str) -> str:
    """A word in lower case and in English; one that nobody knows as it is."""
    plain = _typed.narrow(word).lower().lstrip("/").strip(_AROUND)
    return CHINESE.get(plain, plain)


def split_incident(text: str) -> tuple[str | None, str]:
    """The `INC-n` that a line begins with, and the rest."""
    line = _WIDE_INCIDENT.sub("INC", text)
    found = _INCIDENT.match(line)
    if found is None:
        return None, text
    return f"INC-{int(found.group(1))}", line[found.end() :]


def _first(text: str) -> tuple[str, str]:
    parts = text.split(None, 1)
    first, rest = (parts[0], parts[1] if len(parts) > 1 else "") if parts else ("", "")
    if (mark := _MARKS.search(first)) and mark.start() > 0:
        behind = first[mark.end() :]
        return first[: mark.start()], text[
            text.find(first) + mark.end() :
        ].strip() if behind else rest
    return first, rest
