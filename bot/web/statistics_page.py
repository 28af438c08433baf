"""The page of the figures as HTML: one file, no script, readable without its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bot.domain.text import Locale
from bot.learning.statistics import Share, Statistics, Timing
from bot.locales import translate

_STYLE = """
body{font:16px/1.5 system-ui,"Noto Sans CJK SC",sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:.2rem} h2{margin:2rem 0 .4rem;font-size:1.15rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.4rem .6rem;vertical-align:top;
border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}
th{font-weight:600} td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.d{opacity:.8;font-size:.92rem} .few{opacity:.65} a{color:inherit}
.bar{display:block;height:.45rem;border-radius:.2rem;background:#2a78d6;min-width:1px;margin:.25rem 0 0 auto}
td:not(.n)>.bar{margin-left:0} td.n:has(.bar){min-width:8rem}
svg{max-width:100%;height:auto;display:block} svg text{fill:currentColor;font-size:12px} svg rect{fill:#2a78d6}
.wide{overflow-x:auto} .wide table{min-width:38rem} .wide svg{min-width:38rem}
"""


def page_of(statistics: Statistics, locale: Locale, tables: tuple[str, str]) -> str:
    """The page in one language.

    tables: addresses of both CSV files.
    """

    def word(key: str, **fields: object) -> str:
        return escape(translate(locale, f"learning.{key}", **fields))

    if not statistics.count:
        body = f"<p>{word('page_none')}</p>"
    else:
        body = "".join(
            (
                _timings(statistics, locale),
                _weeks(statistics, locale),
                _shares(statistics, locale),
                _causes(statistics, locale),
                _blind_spots(statistics, locale),
                _overdue(statistics, locale),
            )
        )
    machines = (
        f"<h2>{word('page_machines')}</h2><p>"
        f'<a href="{escape(tables[0])}">{word("page_csv_incidents")}</a> · '
        f'<a href="{escape(tables[1])}">{word("page_csv_summary")}</a></p>'
    )
    days = round((statistics.until - statistics.since).total_seconds() / 86_400)
    head = word("stats_head", count=statistics.count, open=statistics.open, days=days)
    drills = f" · {word('stats_drills', count=statistics.drills)}" if statistics.drills else ""
    dates = word(
        "page_span",
        since=f"{statistics.since:%Y-%m-%d %H:%M}",
        until=f"{statistics.until:%Y-%m-%d %H:%M}",
    )
    return (
        f'<!doctype html><html lang="{locale.value}"><head><meta charset="utf-8">'
        f'<title>{word("page_title")}</title><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{word('page_title')}</h1><p>{head.replace('*', '')}{drills}<br>{dates}</p>{body}{machines}"
        "</main></body></html>"
    )


def _table(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], locale: Locale) -> str:
    """heads: catalogue key and CSS class of each column; cells are HTML already."""
    if not rows:
        return f"<p>{escape(translate(locale, 'learning.page_none_listed'))}</p>"
    top = "".join(
        f'<th scope="col" class="{kind}">{escape(translate(locale, f"learning.{key}"))}</th>'
        for key, kind in heads
    )
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{cell}</td>' for (_, kind), cell in zip(heads, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def _heading(locale: Locale, key: str) -> str:
    return f"<h2>{escape(translate(locale, f'learning.{key}'))}</h2>"


def _timings(statistics: Statistics, locale: Locale) -> str:
    most = max((item.median_s or 0.0 for item in statistics.timings), default=0.0)

    def row(item: Timing) -> list[str]:
        name = escape(translate(locale, f"report.durations.{item.name.value}"))
        few = escape(translate(locale, "learning.page_few", n=item.n))
        median = f'<span class="few">{few}</span>'
        if item.median_s is not None:
            median = _span(item.median_s) + _bar(item.median_s / most if most else 0.0)
        p90 = "–" if item.p90_s is None else _span(item.p90_s)
        text = escape(translate(locale, f"report.definition.{item.name.value}"))
        return [name, median, p90, str(item.n), text]

    heads = (
        ("page_milestone", ""), ("page_median", "n"), ("page_p90", "n"), ("page_n", "n"),
        ("page_definition", "d"),
    )  # fmt: skip
    note = escape(translate(locale, "learning.definition_median"))
    table = _table(heads, [row(item) for item in statistics.timings], locale)
    return f'{_heading(locale, "page_timings")}{table}<p class="few">{note}</p>'


_CHART_WIDTH, _CHART_HEIGHT, _BARS_TOP, _BARS_BOTTOM = 960, 190, 24, 160


def _weeks(statistics: Statistics, locale: Locale) -> str:
    """One bar a week, its count above it; the same numbers are its text for those who cannot see it."""
    weeks = statistics.weeks
    most = max((count for _, count in weeks), default=0) or 1
    wide = _CHART_WIDTH / max(len(weeks), 1)
    every = -(-len(weeks) // 14)
    parts = []
    for place, (monday, count) in enumerate(weeks):
        middle = wide * (place + 0.5)
        high = (_BARS_BOTTOM - _BARS_TOP) * count / most
        top = _BARS_BOTTOM - high
        if count:
            parts.append(
                f'<rect x="{wide * place + wide * 0.15:.1f}" y="{top:.1f}" width="{wide * 0.7:.1f}" '
                f'height="{high:.1f}" rx="2"/>'
                f'<text x="{middle:.1f}" y="{top - 5:.1f}" text-anchor="middle">{count}</text>'
            )
        if place % every == 0:
            parts.append(
                f'<text x="{middle:.1f}" y="{_BARS_BOTTOM + 18}" text-anchor="middle">{monday:%m-%d}</text>'
            )
    told = ", ".join(f"{monday.isoformat()}: {count}" for monday, count in weeks)
    title = escape(translate(locale, "learning.page_weeks"))
    note = escape(translate(locale, "learning.page_weeks_note"))
    return (
        f'<h2>{title}</h2><div class="wide"><svg role="img" aria-label="{title}. {escape(told)}" '
        f'viewBox="0 0 {_CHART_WIDTH} {_CHART_HEIGHT}" width="{_CHART_WIDTH}">'
        f'<path d="M0 {_BARS_BOTTOM + 0.5}H{_CHART_WIDTH}" stroke="currentColor" opacity=".3"/>'
        f'{"".join(parts)}</svg></div><p class="few">{note}</p>'
    )


def _shares(statistics: Statistics, locale: Locale) -> str:
    def row(name: str, share: Share) -> list[str]:
        ratio = share.ratio
        shown = "–" if ratio is None else f"{ratio * 100:.0f} %{_bar(ratio)}"
        return [
            escape(translate(locale, f"learning.share_{name}")),
            shown,
            f"{share.part}/{share.n}",
            escape(translate(locale, f"learning.definition_{name}")),
        ]

    heads = (
        ("page_what_share", ""),
        ("page_share", "n"),
        ("page_part", "n"),
        ("page_definition", "d"),
    )
    rows = [
        row("first_guess", statistics.first_guess),
        row("recurrence", statistics.recurrence),
        row("wasted", statistics.wasted),
    ]
    return _heading(locale, "page_shares") + _table(heads, rows, locale)


def _causes(statistics: Statistics, locale: Locale) -> str:
    most = max((count for _, _, count in statistics.causes), default=1)
    rows = [
        [f"{escape(title.in_locale(locale))}{_bar(count / most)}", escape(cause), str(count)]
        for cause, title, count in statistics.causes
    ]
    heads = (("page_cause", ""), ("page_cause_id", ""), ("page_count", "n"))
    return _heading(locale, "page_causes") + _table(heads, rows, locale)


def _blind_spots(statistics: Statistics, locale: Locale) -> str:
    rows = [
        [escape(item.service), escape(item.what.in_locale(locale)), str(item.count)]
        for item in statistics.blind_spots
    ]
    heads = (("page_service", ""), ("page_what", ""), ("page_count", "n"))
    return _heading(locale, "page_blind") + _table(heads, rows, locale)


def _overdue(statistics: Statistics, locale: Locale) -> str:
    rows = [
        [escape(item.incident), item.due.isoformat(), str(item.days)] for item in statistics.overdue
    ]
    heads = (("page_incident", ""), ("page_due", ""), ("page_days", "n"))
    return _heading(locale, "page_overdue") + _table(heads, rows, locale)


def _bar(share: float) -> str:
    if share <= 0:
        return ""
    return f'<span class="bar" style="width:{max(0.0, min(1.0, share)) * 100:.1f}%"></span>'


def _span(seconds: float) -> str:
    """A length of time in its two largest units."""
    left = round(seconds)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"
